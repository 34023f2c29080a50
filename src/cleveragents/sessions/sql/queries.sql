-- Every statement on the session database: one text for SQLite and PostgreSQL.
--
-- A line `-- name: NAME` begins a statement, `-- part: NAME` a text that later ones have in common and name in
-- braces, `-- filter: NAME` a condition of lists; those that are wanted stand in place of {filters}. With a database
-- in brackets after the name it is the text for that database alone, instead of the one before. Parameters are
-- written :name, and comments stand on lines of their own. query_loader.py reads this file, tables.py says what the
-- columns are.


-- Appending ------------------------------------------------------------------------------------------------

-- part: set_changed
-- What each change of a session sets: its time, and its place before all others in lists.
updated_at = CASE WHEN updated_at > :now THEN updated_at ELSE :now END,
activity = (
    SELECT CASE WHEN max(others.activity) < :now THEN :now ELSE max(others.activity) + 1 END
    FROM sessions AS others
)

-- name: take_numbers
-- The numbers of the next messages, and the write lock of the session until the transaction ends. A turn gets none
-- after a later one has begun; outside a turn the number is 0.
UPDATE sessions
SET
    message_count = message_count + :count,
    first_words = coalesce(first_words, CAST(:first_words AS TEXT)),
    {set_changed}
WHERE id = :session_id AND (:turn_number = 0 OR turn_number = :turn_number)
RETURNING message_count

-- name: begin_turn
UPDATE sessions
SET turn_number = turn_number + 1
WHERE id = :session_id
RETURNING turn_number

-- name: add_message
INSERT INTO messages (
    session_id, sequence, role, content, tool_call_id, tool_calls, parts, agent, metadata, created_at
)
VALUES (
    :session_id, :sequence, :role, :content, :tool_call_id, :tool_calls, :parts, :agent, :metadata, :created_at
)


-- Reading messages -----------------------------------------------------------------------------------------

-- part: message_columns
sequence, role, content, tool_call_id, tool_calls, parts, agent, metadata, created_at

-- name: messages
SELECT {message_columns}
FROM messages
WHERE session_id = :session_id AND sequence >= :start AND sequence < :stop
ORDER BY sequence

-- name: last_messages
-- The newest come first, so that the index is read from its end.
SELECT {message_columns}
FROM messages
WHERE session_id = :session_id
ORDER BY sequence DESC
LIMIT :limit

-- name: count
SELECT message_count
FROM sessions
WHERE id = :session_id


-- One session ----------------------------------------------------------------------------------------------

-- part: summary_columns
id, namespace, actor_name, title, automation_level, message_count, input_tokens, output_tokens, cost_nano,
cost_complete, forked_from, metadata, created_at, updated_at, activity, first_words

-- part: summary_of_session
SELECT {summary_columns}
FROM sessions
WHERE id = :session_id

-- name: summary
{summary_of_session}

-- name: summary_for_change
-- A writing transaction of SQLite has locked the whole database by now.
{summary_of_session}

-- name: summary_for_change [postgresql]
-- No other change may come between reading and writing.
{summary_of_session}
FOR UPDATE

-- name: plans
SELECT session_id, plan_id, phase, state
FROM linked_plans
WHERE session_id = :session_id
ORDER BY ordinal

-- name: tags
SELECT session_id, tag
FROM session_tags
WHERE session_id = :session_id
ORDER BY tag

-- part: entry_columns
input_tokens, output_tokens, cost_nano, llm, created_at, cached_tokens, reasoning_tokens

-- name: usage
SELECT {entry_columns}
FROM usage_entries
WHERE session_id = :session_id
ORDER BY key

-- name: usage_page
SELECT key, {entry_columns}
FROM usage_entries
WHERE session_id = :session_id AND key > :after
ORDER BY key
LIMIT :limit

-- name: change
UPDATE sessions
SET
    title = :title,
    automation_level = :automation_level,
    metadata = :metadata,
    input_tokens = :input_tokens,
    output_tokens = :output_tokens,
    cost_nano = :cost_nano,
    cost_complete = :cost_complete,
    {set_changed}
WHERE id = :session_id

-- name: delete
-- What belongs to the session goes with it, by its foreign keys.
DELETE FROM sessions
WHERE id = :session_id
RETURNING id

-- name: delete_plans
DELETE FROM linked_plans
WHERE session_id = :session_id

-- name: delete_tags
DELETE FROM session_tags
WHERE session_id = :session_id


-- New rows -------------------------------------------------------------------------------------------------

-- name: newest_activity
SELECT coalesce(max(activity), 0) AS activity
FROM sessions

-- name: add_session
INSERT INTO sessions (
    id, namespace, actor_name, title, automation_level, forked_from, imported_checksum, metadata, message_count,
    input_tokens, output_tokens, cost_nano, cost_complete, created_at, updated_at, activity
)
VALUES (
    :id, :namespace, :actor_name, :title, :automation_level, :forked_from, :imported_checksum, :metadata, :message_count,
    :input_tokens, :output_tokens, :cost_nano, :cost_complete, :created_at, :updated_at, :activity
)

-- name: set_first_words
UPDATE sessions
SET first_words = :first_words
WHERE id = :session_id

-- name: add_plan
INSERT INTO linked_plans (session_id, plan_id, ordinal, phase, state)
VALUES (:session_id, :plan_id, :ordinal, :phase, :state)

-- name: add_tag
INSERT INTO session_tags (session_id, tag)
VALUES (:session_id, :tag)

-- name: add_usage
INSERT INTO usage_entries (
    session_id, llm, input_tokens, output_tokens, cost_nano, created_at, cached_tokens, reasoning_tokens
)
VALUES (
    :session_id, :llm, :input_tokens, :output_tokens, :cost_nano, :created_at, :cached_tokens, :reasoning_tokens
)


-- Lists ----------------------------------------------------------------------------------------------------

-- filter: actor_name
AND actor_name = :actor_name

-- filter: namespace
AND namespace = :namespace

-- filter: imported_checksum
AND imported_checksum = :imported_checksum

-- filter: id_prefix
-- A range, which the primary key finds; LIKE would read every session.
AND id >= :id_prefix AND id < :id_prefix_end

-- filter: since
-- No session's activity is before its last change, so the index says where to stop looking.
AND activity >= :since AND updated_at >= :since

-- filter: until
AND updated_at < :until

-- filter: tag
AND id IN (SELECT session_id FROM session_tags WHERE tag = :tag)

-- name: place
-- Where a page that comes after this session begins.
SELECT activity
FROM sessions
WHERE id = :session_id

-- part: from_page
FROM sessions
WHERE
    (activity, id) < (:activity, :after)
    {filters}
ORDER BY activity DESC, id DESC
LIMIT :limit

-- name: page
SELECT {summary_columns}
{from_page}

-- name: page_plans
SELECT session_id, plan_id, phase, state
FROM (
    SELECT id
    {from_page}
) AS page
INNER JOIN linked_plans ON session_id = page.id
ORDER BY session_id, ordinal

-- name: page_tags
SELECT session_id, tag
FROM (
    SELECT id
    {from_page}
) AS page
INNER JOIN session_tags ON session_id = page.id
ORDER BY session_id, tag


-- Figures: each reads one table once, or with its sessions, and none the messages ----------------------------

-- name: started
-- The day counts from the year 1: never negative, so that both databases round alike.
SELECT
    (created_at + 62135596800000000) / 86400000000 AS day,
    actor_name,
    count(*) AS sessions,
    sum(message_count) AS messages
FROM sessions
GROUP BY day, actor_name

-- name: used
SELECT
    (usage_entries.created_at + 62135596800000000) / 86400000000 AS day,
    sessions.actor_name,
    usage_entries.llm,
    count(*) AS calls,
    sum(usage_entries.input_tokens) AS input_tokens,
    sum(usage_entries.output_tokens) AS output_tokens,
    sum(usage_entries.cost_nano) AS cost_nano,
    -- How many of the costs are known.
    count(usage_entries.cost_nano) AS known
FROM usage_entries
INNER JOIN sessions ON sessions.id = usage_entries.session_id
GROUP BY day, sessions.actor_name, usage_entries.llm


-- Checking -------------------------------------------------------------------------------------------------

-- name: orphans
-- Rows that another program left without their session, by table.
SELECT 'messages' AS table_name, count(*) AS orphans FROM messages
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = messages.session_id)
UNION ALL
SELECT 'usage_entries' AS table_name, count(*) AS orphans FROM usage_entries
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = usage_entries.session_id)
UNION ALL
SELECT 'linked_plans' AS table_name, count(*) AS orphans FROM linked_plans
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = linked_plans.session_id)
UNION ALL
SELECT 'session_tags' AS table_name, count(*) AS orphans FROM session_tags
WHERE NOT EXISTS (SELECT 1 FROM sessions WHERE sessions.id = session_tags.session_id)
