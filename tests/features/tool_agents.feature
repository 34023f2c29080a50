Feature: Tools work on what a run shares
  A tool is a few lines of Python. What it writes into the global context is handed on to the agents after it, and is
  still there on another day.

  @CM-12
  Scenario Outline: What a tool writes into the context is kept
    Given a tool that sets the writing stage to "drafting" and <way>
    And a global context in which the writing stage is "planning" and the author is "Kim"
    When the tool has worked on a message
    Then its reply tells of the new writing stage and of nothing else
    And the global context it was given still says "planning"
    When the reply is merged into a saved context
    Then the context on disk says "drafting" when it is opened again, and the author is still "Kim"

    Examples:
      | way                          |
      | runs in the sandbox          |
      | runs unsafe, where asked for |

  Scenario: What a tool wrote before it failed is not kept
    Given a tool that sets the writing stage to "drafting" and then fails
    And a global context in which the writing stage is "planning" and the author is "Kim"
    When the tool has worked on a message
    Then the tool has failed and there is no reply
    And the global context it was given still says "planning"
