-- Who may call: virtual keys, and the sessions opened with them.
--
-- Conventions of every table: instants are milliseconds since the Unix epoch and end in `_ms`, durations are microseconds
-- and end in `_us`, booleans are 0 and 1. `strict` makes SQLite hold the types that Postgres would hold.

create table keys
(
    -- Given by the caller, grows with time (UUID v7). Stands in records and in addresses, so it is no secret.
    key_id        text primary key not null,
    -- For people; not unique.
    name          text    not null,
    -- What is left to see of the secret: `sy_7Qd4…f0aP`.
    display       text    not null,
    -- SHA-256 of the secret, 32 bytes. The secret itself is nowhere.
    hash          blob    not null,
    -- JSON array of scope names: `["invoke"]`. Names that a build does not know grant nothing.
    scopes        text    not null,
    created_at_ms integer not null,
    -- Null: never.
    expires_at_ms integer,
    -- Null: in force. Set once and never moved.
    revoked_at_ms integer,
    -- Arrival of the newest recorded request.
    last_used_at_ms integer,
    -- Requests recorded under this key, ever. Counted here, because the request log may be purged.
    usage_count   integer not null default 0
) strict, without rowid;

-- Every call that is not cached looks its key up by hash; and no two keys may share one.
create unique index keys_by_hash on keys (hash);

create table sessions
(
    -- SHA-256 of the session's token, 32 bytes.
    id_hash       blob primary key not null,
    -- What it was opened with: a key's id, or the name of the master key. No foreign key, for the latter has no row.
    credential_id text    not null,
    -- Whom the dashboard greets.
    subject       text    not null,
    -- As in `keys`: what the credential could do when the session was opened.
    scopes        text    not null,
    -- JSON object of the session's own values.
    data          text    not null,
    created_at_ms integer not null,
    -- A session ends when it has been idle too long…
    last_seen_at_ms integer not null,
    -- …and at this instant at the latest.
    expires_at_ms integer not null
) strict, without rowid;

-- Revoking a key ends its sessions. Expired ones are swept by a scan: there are as many rows as people logged in.
create index sessions_by_credential on sessions (credential_id);
