Feature: One turn of an application on a named context
  What was said before goes to the agents, within limits; settings of one run are seen by all of them.

  Background:
    Given an application whose only agent repeats what reaches it

  @CM-14
  Scenario: A long history is cut to its last ten messages
    Given a context that holds 15 messages
    When a new prompt is run on the context
    Then the agents see messages 6 to 15 with their roles, oldest first, and none before
    And the new prompt stands after them

  @CM-15
  Scenario: A long answer from before is shortened for the agents, and kept whole on disk
    Given a context that holds an answer of 600 characters
    When a new prompt is run on the context
    Then the agents see its first 500 characters and a mark that it goes on
    And the context still holds all 600

  @CM-16
  Scenario: The first prompt of a context reaches the agents as it was typed
    Given a context that holds 0 messages
    When a new prompt is run on the context
    Then the agents see exactly the prompt

  @CM-17
  Scenario: A temperature given for a run is in the global context
    When the application is made again with temperature 0.8
    Then its global context has temperature 0.8
    And an agent that looks sees temperature 0.8
