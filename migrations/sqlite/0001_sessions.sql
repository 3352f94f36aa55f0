-- What the columns mean is in src/store/sql/mod.rs. `{prefix}` is the option.

CREATE TABLE {prefix}sessions (
    key BLOB NOT NULL UNIQUE,
    incarnation INTEGER NOT NULL UNIQUE,
    counter INTEGER NOT NULL,
    cut INTEGER NOT NULL,
    next INTEGER NOT NULL,
    window_messages INTEGER NOT NULL,
    window_chars INTEGER NOT NULL,
    window_tokens INTEGER NOT NULL,
    carried_tokens INTEGER NOT NULL,
    marked BOOLEAN NOT NULL DEFAULT FALSE,
    dormant BOOLEAN NOT NULL DEFAULT FALSE,
    own_limits BOOLEAN NOT NULL DEFAULT FALSE,
    limit_messages INTEGER,
    limit_chars INTEGER,
    limit_tokens INTEGER,
    pause_tokens INTEGER,
    pause_millis INTEGER,
    lease_token INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    lease_holder TEXT,
    created_millis INTEGER NOT NULL,
    updated_millis INTEGER NOT NULL,
    options BLOB NOT NULL,
    pause BLOB,
    view BLOB NOT NULL,
    options_json TEXT GENERATED ALWAYS AS (CAST(options AS TEXT)) VIRTUAL,
    pause_json TEXT GENERATED ALWAYS AS (CAST(pause AS TEXT)) VIRTUAL,
    view_json TEXT GENERATED ALWAYS AS (CAST(view AS TEXT)) VIRTUAL
);

-- One row: tokens rise also across sessions that have a key one after the other.
CREATE TABLE {prefix}lease_tokens (last INTEGER NOT NULL);

INSERT INTO {prefix}lease_tokens VALUES (0);

-- With row ids: without, rows above a kilobyte would take pages of their own.
CREATE TABLE {prefix}messages (
    session INTEGER NOT NULL,
    position INTEGER NOT NULL,
    chars INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    unix_millis INTEGER NOT NULL,
    payload BLOB NOT NULL,
    json TEXT GENERATED ALWAYS AS (CAST(payload AS TEXT)) VIRTUAL,
    UNIQUE (session, position)
);

CREATE TABLE {prefix}message_ids (
    session INTEGER NOT NULL,
    id BLOB NOT NULL,
    position INTEGER NOT NULL,
    fingerprint INTEGER NOT NULL,
    PRIMARY KEY (session, id)
) WITHOUT ROWID;

CREATE TABLE {prefix}compactions (
    session INTEGER NOT NULL,
    number INTEGER NOT NULL,
    revision TEXT NOT NULL,
    unix_millis INTEGER NOT NULL,
    view_before BLOB NOT NULL,
    view_after BLOB NOT NULL,
    event BLOB NOT NULL,
    view_before_json TEXT GENERATED ALWAYS AS (CAST(view_before AS TEXT)) VIRTUAL,
    view_after_json TEXT GENERATED ALWAYS AS (CAST(view_after AS TEXT)) VIRTUAL,
    event_json TEXT GENERATED ALWAYS AS (CAST(event AS TEXT)) VIRTUAL,
    UNIQUE (session, number)
);

-- AUTOINCREMENT: the number of an event that is gone is never given again.
CREATE TABLE {prefix}usage_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key BLOB NOT NULL,
    unix_millis INTEGER NOT NULL,
    event BLOB NOT NULL,
    event_json TEXT GENERATED ALWAYS AS (CAST(event AS TEXT)) VIRTUAL
);

CREATE INDEX {prefix}usage_events_of_session ON {prefix}usage_events (key, number);

CREATE TABLE {prefix}usage_sums (
    day INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    counter TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (day, shard, counter)
) WITHOUT ROWID;

CREATE TABLE {prefix}usage_of_sessions (
    key BLOB NOT NULL,
    counter TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (key, counter)
) WITHOUT ROWID;

CREATE INDEX {prefix}usage_largest ON {prefix}usage_of_sessions (counter, value);
