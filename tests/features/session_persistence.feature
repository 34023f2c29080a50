Feature: Sessions that last
  What the service acknowledges is in the database, and another process finds it there. Every scenario runs on
  SQLite and on PostgreSQL.

  Rule: Sessions come and go

    @SP-01
    Scenario: A new session gets an id of its own
      When a session is created
      And another process looks for it
      Then what it finds has a ULID for an id
      And what it finds is in the namespace "local" and holds 0 messages

    @SP-02
    Scenario: A session is created for an actor
      When a session is created for the actor "team/planner"
      And another process looks for it
      Then what it finds belongs to the actor "team/planner"

    @SP-03
    Scenario: A stored session is the session that was created
      When a session is created
      And another process looks for it
      Then what it finds equals what was created

    @SP-04
    Scenario: Every stored session is listed
      Given 3 stored sessions
      When the sessions are listed
      Then the list names exactly these 3, the newest first

    @SP-05
    Scenario: Without sessions the list is empty
      When the sessions are listed
      Then the list names nothing

    @SP-06
    Scenario: A deleted session is gone
      Given 3 stored sessions
      When the second of them is deleted
      Then looking for it gives SessionNotFoundError
      And the other two are listed

    @SP-07
    Scenario: What does not exist cannot be deleted
      When a session that does not exist is deleted
      Then SessionNotFoundError tells so

  Rule: Messages are kept in order

    @SP-08
    Scenario: A message is stored as it was said
      Given a stored session
      When the user's "Shall we begin?" is appended
      Then the message that comes back is the user's "Shall we begin?"
      And another process reads the user's "Shall we begin?"

    @SP-09 @SP-10
    Scenario: Messages keep the order in which they were appended
      Given a stored session with 6 messages
      When all messages are read
      Then they are numbered 0 to 5 and read as they were appended

    @SP-11
    Scenario: Nothing can be said in a session that does not exist
      When a message is appended to a session that does not exist
      Then SessionNotFoundError tells so

    @SP-12 @SP-13
    Scenario Outline: Messages are read in pages
      Given a stored session with 10 messages
      When at most <limit> messages are read from number <offset> on
      Then they are numbered <numbers>

      Examples:
        | limit | offset | numbers |
        | 3     | 0      | 0 to 2  |
        | 3     | 5      | 5 to 7  |
        | 3     | 9      | 9 to 9  |

    @SP-14
    Scenario: The count is the number of messages
      Given a stored session with 7 messages
      Then the count is 7

  Rule: A session travels as a document

    @SP-15
    Scenario: An export can be checked
      Given a stored session with 2 messages
      When the session is exported
      Then the document has a schema version, a checksum and 2 messages

    @SP-16
    Scenario: An import is a session of its own
      Given a stored session with 2 messages
      When the session is exported
      And the document is imported
      Then the imported session has the same 2 messages and another id

    @SP-17
    Scenario: A document of an unknown version is refused
      Given a stored session with 2 messages
      When the session is exported
      And the document claims schema version "99.0"
      Then importing it gives SessionImportError, and stores nothing

    @SP-18
    Scenario: A document that was changed is refused
      Given a stored session with 2 messages
      When the session is exported
      And a word in the document is changed
      Then importing it gives SessionImportError, and stores nothing

  Rule: Usage adds up

    @SP-19
    Scenario: Usage is on record
      Given a stored session
      When 100 and 50 tokens for 0.005 dollars are used
      Then another process reads a usage of 100 and 50 tokens for 0.005 dollars

    @SP-20
    Scenario: Usage is a sum
      Given a stored session
      When 100 and 50 tokens for 0.005 dollars are used
      And 200 and 100 tokens for 0.010 dollars are used
      Then another process reads a usage of 300 and 150 tokens for 0.015 dollars

    @SP-21
    Scenario: A session that does not exist uses nothing
      When usage is entered for a session that does not exist
      Then SessionNotFoundError tells so

  Rule: What goes in comes out

    @SP-22
    Scenario: Every field of a session survives
      Given a stored session with a value in every field
      When another process looks for it
      Then what it finds has all these values

    @SP-23
    Scenario: What is noted about a message survives
      Given a stored session
      When a message with notes, parts and tool calls is appended
      Then another process reads the same notes, parts and tool calls
