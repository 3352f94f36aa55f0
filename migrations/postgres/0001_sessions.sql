-- What the columns mean is in src/store/sql/mod.rs. `{prefix}` is the option.

CREATE TABLE {prefix}sessions (
    key BYTEA NOT NULL UNIQUE,
    incarnation BIGINT NOT NULL UNIQUE,
    counter BIGINT NOT NULL,
    cut BIGINT NOT NULL,
    next BIGINT NOT NULL,
    window_messages BIGINT NOT NULL,
    window_chars BIGINT NOT NULL,
    window_tokens BIGINT NOT NULL,
    carried_tokens BIGINT NOT NULL,
    marked BOOLEAN NOT NULL DEFAULT FALSE,
    dormant BOOLEAN NOT NULL DEFAULT FALSE,
    own_limits BOOLEAN NOT NULL DEFAULT FALSE,
    limit_messages BIGINT,
    limit_chars BIGINT,
    limit_tokens BIGINT,
    pause_tokens BIGINT,
    pause_millis BIGINT,
    lease_token BIGINT NOT NULL DEFAULT 0,
    lease_until BIGINT,
    lease_holder TEXT,
    created_millis BIGINT NOT NULL,
    updated_millis BIGINT NOT NULL,
    options BYTEA NOT NULL,
    pause BYTEA,
    view BYTEA NOT NULL
);

CREATE SEQUENCE {prefix}lease_tokens;

CREATE TABLE {prefix}messages (
    session BIGINT NOT NULL,
    position BIGINT NOT NULL,
    chars BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    unix_millis BIGINT NOT NULL,
    payload BYTEA NOT NULL,
    UNIQUE (session, position)
);

CREATE TABLE {prefix}message_ids (
    session BIGINT NOT NULL,
    id BYTEA NOT NULL,
    position BIGINT NOT NULL,
    fingerprint BIGINT NOT NULL,
    PRIMARY KEY (session, id)
);

CREATE TABLE {prefix}compactions (
    session BIGINT NOT NULL,
    number BIGINT NOT NULL,
    revision TEXT NOT NULL,
    unix_millis BIGINT NOT NULL,
    view_before BYTEA NOT NULL,
    view_after BYTEA NOT NULL,
    event BYTEA NOT NULL,
    UNIQUE (session, number)
);

CREATE TABLE {prefix}usage_events (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key BYTEA NOT NULL,
    unix_millis BIGINT NOT NULL,
    event BYTEA NOT NULL
);

CREATE INDEX {prefix}usage_events_of_session ON {prefix}usage_events (key, number);

CREATE TABLE {prefix}usage_sums (
    day BIGINT NOT NULL,
    shard BIGINT NOT NULL,
    counter TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (day, shard, counter)
);

CREATE TABLE {prefix}usage_of_sessions (
    key BYTEA NOT NULL,
    counter TEXT NOT NULL,
    value BIGINT NOT NULL,
    PRIMARY KEY (key, counter)
);

CREATE INDEX {prefix}usage_largest ON {prefix}usage_of_sessions (counter, value);

-- For queries alone: JSON as PostgreSQL takes it, without NUL; null where it is not to be had.
CREATE FUNCTION {prefix}queryable(document BYTEA) RETURNS JSONB LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN replace(convert_from(document, 'UTF8'), '\u0000', '\ufffd')::JSONB;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$$;

CREATE VIEW {prefix}messages_json AS
SELECT
    encode(s.key, 'escape') AS key,
    m.position,
    m.position >= s.cut AS in_window,
    to_timestamp(m.unix_millis / 1000.0) AS stored_at,
    {prefix}queryable(m.payload) AS json
FROM {prefix}sessions s
JOIN {prefix}messages m ON m.session = s.incarnation;
