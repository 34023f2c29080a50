Feature: A named context keeps a conversation and what belongs to it
  Who runs agents again under the same name finds what was said and done, in another process and on another day.

  @CM-01
  Scenario: A context is there as soon as it is made
    When the context "fresh" is made
    Then it knows its name
    And there is a folder for it with a file for the conversation and one for the rest

  @CM-02
  Scenario: What was said is there for the next process
    Given the context "talk"
    When the user says "Which way to the station?"
    And the assistant says "Straight on."
    And the context is saved
    Then another process finds both messages in the files
    And a second manager of "talk" has exactly the same messages

  @CM-03
  Scenario: What agents share outlives the process
    Given the context "talk"
    When "writing_stage" becomes "planning" in the global context
    And "document_type" becomes "research_paper" in the global context
    Then another process reads both values from the disk
    And both values are there after the manager has read everything anew

  @CM-04
  Scenario: The state moves on and metadata remembers when
    Given the context "talk"
    And a state in which "current_task" is "writing"
    When the state's "current_task" becomes "reviewing"
    And the metadata's "last_update" becomes the time it is now
    Then the state says "reviewing" and nothing else
    And the metadata holds that time as text

  @CM-05
  Scenario: Only the end of a conversation is asked for
    Given the context "talk"
    And 10 numbered messages in it
    When the last 5 messages are asked for
    Then they are the messages 6 to 10 in their order

  @CM-06
  Scenario: A conversation starts over
    Given the context "talk"
    And 5 numbered messages in it
    When the conversation is emptied
    Then there are no messages, for another process neither
    And the folder has stayed

  @CM-07
  Scenario: A context is thrown away
    Given the context "talk"
    And 5 numbered messages in it
    And a state in which "current_task" is "writing"
    When the context is thrown away
    Then its folder is gone
    And opening it says that there is no such context
    And a manager that still held it says that it holds nothing

  @CM-08
  Scenario: The contexts in a folder are counted up
    Given the contexts "context3", "context1" and "context2"
    When the contexts are listed
    Then the list is "context1", "context2", "context3"

  @CM-09
  Scenario: A context moves by way of a file
    Given the context "talk"
    And messages, a state, a global context and metadata in it
    When it is exported to a file
    Then the file holds every part of it
    When the file is imported under the name "arrived"
    Then the context "arrived" holds the same

  @CM-10
  Scenario: A conversation is read as text
    Given the context "talk"
    And a question of 9 o'clock and an answer of 10 o'clock that carries metadata
    When it is shown as text
    Then each message has its time, its role and what was said, and no metadata is seen
    When it is shown as text with metadata
    Then the answer's metadata is seen as well

  @CM-11
  Scenario: A context in which nothing was ever saved
    When the context "fresh" is made
    Then it is said not to exist yet
    And it has no messages
