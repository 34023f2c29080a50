Feature: What a session is, before it is stored
  The model takes what a conversation may hold, gives it one form, and refuses the rest with a reason.

  Rule: A session has an id, a namespace, and perhaps an actor

    @SM-01 @SM-04
    Scenario: A new session needs no more than an id
      When a session is made with the id "01arz3ndektsv4rrffq69g5fav"
      Then its id is "01ARZ3NDEKTSV4RRFFQ69G5FAV"
      And it belongs to the namespace "local"

    @SM-02
    Scenario: A session can belong to an actor
      When a session is made for the actor "team/reviewer"
      Then its actor is "team/reviewer"

    @SM-03 @SM-07
    Scenario: A session need not belong to an actor
      When a session is made for no actor
      Then it has no actor

    @SM-05
    Scenario Outline: What is not a ULID is no id
      When a session with the id "<id>" is tried
      Then it is refused, and the reason says "not a valid id"

      Examples:
        | id                          |
        | chat-with-support              |
        | 01ARZ3NDEKTSV4RRFFQ69G5FAVX |
        | 01ARZ3NDEKTSV4RRFFQ69G5FA   |
        | 81ARZ3NDEKTSV4RRFFQ69G5FAV  |
        | 01ARZ3NDEKTSV4RRFFQ69G5FIL  |

    @SM-06
    Scenario Outline: An actor's name has a namespace and a name
      When a session for the actor "<actor>" is tried
      Then it is refused, and the reason says "namespace/name"

      Examples:
        | actor         |
        | reviewer      |
        | team/         |
        | /reviewer     |
        | Team/Reviewer |
        | team/a/b      |

  Rule: Messages are numbered as they come

    @SM-08
    Scenario: The first message has number 0
      Given an empty session
      When the user says "Is it raining?"
      Then the session holds 1 message
      And the last message is number 0, from the user, and reads "Is it raining?"

    @SM-09
    Scenario: An answer has the next number
      Given an empty session
      When the user says "Is it raining?"
      And the assistant says "It pours."
      Then the session holds 2 messages
      And the last message is number 1, from the assistant, and reads "It pours."

    @SM-15
    Scenario Outline: Messages that are out of order are refused
      When a session is tried with messages numbered <numbers>
      Then it is refused, and the reason says "ordered by sequence"

      Examples:
        | numbers |
        | 1, 0    |
        | 0, 0    |
        | 0, 2    |
        | 1, 2    |

  Rule: A message says something, and who says it

    @SM-10
    Scenario: A tool's message must name the call that it answers
      When a message of the tool is tried without the id of a call
      Then it is refused, and the reason says "tool_call_id"

    @SM-11
    Scenario: A tool's message with the id of a call is fine
      When the tool answers the call "call_7"
      Then the message names the call "call_7"

    @SM-12
    Scenario: Nobody else needs the id of a call
      When a message of the user is made without the id of a call
      Then the message names no call

    @SM-13 @SM-14
    Scenario Outline: A message without anything to read is refused
      When a message of the user is tried with <kind> content
      Then it is refused, and the reason says "whitespace"

      Examples:
        | kind  |
        | blank |
        | empty |

    @SM-37
    Scenario: There are four roles
      Then the roles are user, assistant, system and tool, and no other

  Rule: Plans are linked once

    @SM-16 @SM-17
    Scenario: A plan linked twice is linked once, with what was last said about it
      Given an empty session
      When the plan "01BX5ZZKBKACTAV9WEVGEMMVRZ" is linked in phase "draft"
      And the plan "01bx5zzkbkactav9wevgemmvrz" is linked in phase "apply"
      Then 1 plan is linked
      And the plan "01BX5ZZKBKACTAV9WEVGEMMVRZ" is in phase "apply"

    @SM-18
    Scenario: Several plans can be linked
      Given an empty session
      When the plan "01BX5ZZKBKACTAV9WEVGEMMVRZ" is linked in phase "draft"
      And the plan "01ARZ3NDEKTSV4RRFFQ69G5FAV" is linked in phase "draft"
      Then 2 plans are linked

  Rule: Usage is counted from zero and never below

    @SM-19
    Scenario: A new session has used nothing
      Given an empty session
      Then it has used 0 and 0 tokens for 0 dollars

    @SM-20
    Scenario: A session carries what it has used
      Given a session that has used 4100 and 230 tokens for 0.0123 dollars
      Then it has used 4100 and 230 tokens for 0.0123 dollars

    @SM-21
    Scenario Outline: Less than nothing cannot be used
      When a usage of <input> and <output> tokens for <cost> dollars is tried
      Then it is refused, and the reason says "<what>"

      Examples:
        | input | output | cost | what           |
        | -1    | 0      | 0    | input_tokens   |
        | 0     | -1     | 0    | output_tokens  |
        | 0     | 0      | -0.1 | estimated_cost |
        | 0     | 0      | nan  | estimated_cost |

  Rule: An export is a document with a checksum

    @SM-22 @SM-40
    Scenario: The keys of an export stand in their documented order
      Given a session with 3 messages
      When it is exported
      Then the keys of the document are, in this order
        | key              |
        | schema_version   |
        | session_id       |
        | namespace        |
        | actor_name       |
        | title            |
        | automation_level |
        | created_at       |
        | updated_at       |
        | token_usage      |
        | usage_entries    |
        | linked_plan_ids  |
        | linked_plans     |
        | tags             |
        | forked_from      |
        | metadata         |
        | messages         |
        | checksum         |

    @SM-23 @SM-41
    Scenario: An export holds every message in its place
      Given a session with 3 messages
      When it is exported
      Then the document holds the 3 messages of the session, by number

    @SM-39
    Scenario: An export names the linked plans
      Given an empty session
      When the plan "01BX5ZZKBKACTAV9WEVGEMMVRZ" is linked in phase "draft"
      And it is exported
      Then the document names the plan "01BX5ZZKBKACTAV9WEVGEMMVRZ"

  Rule: Commands show a session in short

    @SM-24 @SM-25
    Scenario: What is shown has the facts and the newest messages
      Given a session with 7 messages
      When it is shown
      Then session_id, message_count, created_at, updated_at, token_usage and namespace are shown
      And the recent messages are the last 5

    @SM-26 @SM-27
    Scenario: Actor and automation level are shown
      Given a session for the actor "team/reviewer" that does everything by itself
      When it is shown
      Then the actor "team/reviewer" and the level "full_automation" are shown

  Rule: A session is read in parts

    @SM-28
    Scenario: A session without messages says so
      Given an empty session
      Then the session holds 0 messages
      And it is empty and has no last message

    @SM-29 @SM-30 @SM-31 @SM-32
    Scenario Outline: A part of the messages is named by a limit and an offset
      Given a session with 5 messages
      When messages are read with <limit> and <offset>
      Then these are read: <numbers>

      Examples:
        | limit    | offset    | numbers       |
        | no limit | no offset | 0, 1, 2, 3, 4 |
        | limit 3  | no offset | 0, 1, 2       |
        | no limit | offset 2  | 2, 3, 4       |
        | limit 2  | offset 1  | 1, 2          |
        | limit 0  | no offset | none          |
        | limit 9  | offset 5  | none          |

    @SM-38
    Scenario: A session keeps what its owner notes about it
      When a session is made with the note "env" that says "test"
      Then its note "env" says "test"

  Rule: Errors of the store can be caught together

    @SM-33 @SM-34 @SM-35 @SM-36
    Scenario: Each kind of error is an error of the session service
      Then an error of the session service is an exception
      And not found, export and import errors are errors of the session service
