Feature: Agents in a stream change what they share
  A message flows from agent to agent with the run's global context, and what each of them does to it is kept.

  @CM-13
  Scenario: Whatever agents along the way do to the context is there at the end
    Given a network where two agents work side by side between a first and a last one
    And a global context with a value that none of them touches
    When a message flows through the network
    Then the message has passed all of them
    And the last agent has seen what the three before it did
    And the context at the end holds every change, the removal too, and the untouched value
