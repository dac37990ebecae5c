-- SPDX-License-Identifier: GPL-2.0-only
-- Tables of FastTrack's tracepoints io_origin, which Perfetto records with fasttrack.cfg.
-- docs/TRACE-QUERIES.md says how.
-- Where an event says when something ended and how long it took, `ts` is the begin and `dur` the time, ns.
-- What is unknown is NULL or 0, as the kernel says it. Ids of tasks and files are those of fasttrack_task and
-- fasttrack_file.

-- Names of contract/trace.toml by number; an operation's number is the kernel's.
CREATE OR REPLACE PERFETTO TABLE _fasttrack_names AS
WITH names(what, number, name) AS (
  VALUES
    ('block_type', 0, 'unknown'),
    ('block_type', 1, 'data'),
    ('block_type', 2, 'journal'),
    ('block_type', 3, 'metadata'),
    ('block_type', 4, 'node'),
    ('block_type', 5, 'checkpoint'),
    ('call_kind', 0, 'other'),
    ('call_kind', 1, 'read'),
    ('call_kind', 2, 'write'),
    ('call_kind', 3, 'fsync'),
    ('call_kind', 4, 'fdatasync'),
    ('call_kind', 5, 'fault'),
    ('call_kind', 6, 'sync'),
    ('call_kind', 7, 'syncfs'),
    ('call_kind', 8, 'mmap_write'),
    ('call_kind', 9, 'direct_read'),
    ('call_kind', 10, 'direct_write'),
    ('call_kind', 11, 'msync'),
    ('call_kind', 12, 'io_uring'),
    ('call_kind', 13, 'splice'),
    ('call_kind', 14, 'splice_read'),
    ('call_kind', 15, 'splice_write'),
    ('call_interface', 0, 'system_call'),
    ('call_interface', 1, 'io_uring'),
    ('call_interface', 2, 'aio'),
    ('cause', 0, 'none'),
    ('cause', 1, 'read'),
    ('cause', 2, 'writeback'),
    ('cause', 3, 'fsync'),
    ('cause', 4, 'fdatasync'),
    ('cause', 5, 'sync_write'),
    ('cause', 6, 'journal'),
    ('cause', 7, 'metadata'),
    ('cause', 8, 'other'),
    ('class', 0, 'neutral'),
    ('class', 1, 'background'),
    ('class', 2, 'foreground'),
    ('transaction_kind', 0, 'jbd2'),
    ('transaction_kind', 1, 'checkpoint'),
    ('wait_kind', 0, 'other'),
    ('wait_kind', 1, 'folio'),
    ('wait_kind', 2, 'dirty_throttle'),
    ('wait_kind', 3, 'transaction'),
    ('wait_kind', 4, 'tag'),
    ('wait_kind', 5, 'hold'),
    ('wait_kind', 6, 'pause'),
    ('wait_kind', 7, 'promote'),
    ('wait_kind', 8, 'protect'),
    ('wait_kind', 9, 'checkpoint'),
    ('wait_kind', 10, 'bio'),
    ('wait_kind', 11, 'buffer'),
    ('wait_kind', 12, 'flush'),
    ('wait_kind', 13, 'writeback'),
    ('file_event', 0, 'first_use'),
    ('file_event', 1, 'rename'),
    ('file_event', 2, 'unlink'),
    ('operation', 0, 'read'),
    ('operation', 1, 'write'),
    ('operation', 2, 'flush'),
    ('operation', 3, 'discard'),
    ('operation', 5, 'secure_erase'),
    ('operation', 9, 'write_zeroes')
)
SELECT what, number, name FROM names;

CREATE OR REPLACE PERFETTO FUNCTION _fasttrack_named(what STRING, number LONG)
RETURNS STRING AS
SELECT name FROM _fasttrack_names WHERE what = $what AND number = $number;

-- MAJOR:MINOR of the kernel's number of a device.
CREATE OR REPLACE PERFETTO FUNCTION _fasttrack_device(dev LONG)
RETURNS STRING AS
SELECT ($dev >> 20) || ':' || ($dev & 0xfffff);

-- A task at its first use.
CREATE OR REPLACE PERFETTO VIEW fasttrack_task AS
SELECT
  ts,
  extract_arg(arg_set_id, 'task') AS task,
  utid,
  extract_arg(arg_set_id, 'tgid') AS tgid,
  extract_arg(arg_set_id, 'uid') AS uid,
  extract_arg(arg_set_id, 'name') AS name,
  extract_arg(arg_set_id, 'kernel_thread') AS kernel_thread
FROM ftrace_event
WHERE name = 'io_task';

-- A file at its first use, at a rename and at its end.
CREATE OR REPLACE PERFETTO VIEW fasttrack_file AS
SELECT
  ts,
  extract_arg(arg_set_id, 'file') AS file,
  _fasttrack_named('file_event', extract_arg(arg_set_id, 'event')) AS event,
  _fasttrack_device(extract_arg(arg_set_id, 'dev')) AS dev,
  extract_arg(arg_set_id, 'inode') AS inode,
  extract_arg(arg_set_id, 'bytes') AS bytes,
  extract_arg(arg_set_id, 'path') AS path
FROM ftrace_event
WHERE name = 'io_file';

-- A bio: the unit that is sent to the block layer.
CREATE OR REPLACE PERFETTO VIEW fasttrack_bio AS
SELECT
  id,
  ts,
  extract_arg(arg_set_id, 'bio') AS bio,
  _fasttrack_device(extract_arg(arg_set_id, 'dev')) AS dev,
  _fasttrack_named('operation', extract_arg(arg_set_id, 'operation')) AS operation,
  extract_arg(arg_set_id, 'sector') AS sector,
  extract_arg(arg_set_id, 'bytes') AS bytes,
  extract_arg(arg_set_id, 'sync') AS sync,
  extract_arg(arg_set_id, 'fua') AS fua,
  extract_arg(arg_set_id, 'preflush') AS preflush,
  extract_arg(arg_set_id, 'meta') AS meta,
  extract_arg(arg_set_id, 'read_ahead') AS read_ahead,
  extract_arg(arg_set_id, 'direct') AS direct,
  _fasttrack_named('class', extract_arg(arg_set_id, 'class')) AS class,
  _fasttrack_named('cause', extract_arg(arg_set_id, 'cause')) AS cause,
  extract_arg(arg_set_id, 'carrier') AS carrier,
  extract_arg(arg_set_id, 'transaction') AS journal_transaction
FROM ftrace_event
WHERE name = 'io_bio';

-- A run of a bio's blocks with one file, one owner and one type.
CREATE OR REPLACE PERFETTO VIEW fasttrack_segment AS
SELECT
  id,
  ts,
  extract_arg(arg_set_id, 'bio') AS bio,
  extract_arg(arg_set_id, 'offset') AS bio_offset,
  extract_arg(arg_set_id, 'bytes') AS bytes,
  _fasttrack_named('block_type', extract_arg(arg_set_id, 'block_type')) AS block_type,
  extract_arg(arg_set_id, 'file') AS file,
  extract_arg(arg_set_id, 'index') AS page,
  extract_arg(arg_set_id, 'owner') AS owner,
  _fasttrack_named('call_kind', extract_arg(arg_set_id, 'call')) AS call
FROM ftrace_event
WHERE name = 'io_segment';

-- A read, write, sync or page fault.
CREATE OR REPLACE PERFETTO VIEW fasttrack_call AS
SELECT
  id,
  ts - extract_arg(arg_set_id, 'took_ns') AS ts,
  extract_arg(arg_set_id, 'took_ns') AS dur,
  extract_arg(arg_set_id, 'task') AS task,
  _fasttrack_named('call_kind', extract_arg(arg_set_id, 'call')) AS call,
  extract_arg(arg_set_id, 'file') AS file,
  extract_arg(arg_set_id, 'offset') AS file_offset,
  extract_arg(arg_set_id, 'bytes') AS bytes,
  extract_arg(arg_set_id, 'result') AS result,
  _fasttrack_named('call_interface', extract_arg(arg_set_id, 'interface')) AS interface,
  extract_arg(arg_set_id, 'thread') AS thread
FROM ftrace_event
WHERE name = 'io_call';

-- A sleep of a task. `number` is a page, a sector or a transaction, by kind.
CREATE OR REPLACE PERFETTO VIEW fasttrack_wait AS
SELECT
  id,
  ts - extract_arg(arg_set_id, 'took_ns') AS ts,
  extract_arg(arg_set_id, 'took_ns') AS dur,
  extract_arg(arg_set_id, 'task') AS task,
  _fasttrack_named('wait_kind', extract_arg(arg_set_id, 'kind')) AS kind,
  _fasttrack_named('class', extract_arg(arg_set_id, 'class')) AS class,
  _fasttrack_device(extract_arg(arg_set_id, 'dev')) AS dev,
  extract_arg(arg_set_id, 'file') AS file,
  extract_arg(arg_set_id, 'number') AS number
FROM ftrace_event
WHERE name = 'io_wait';

-- A transaction of the journal, or a checkpoint of f2fs.
CREATE OR REPLACE PERFETTO VIEW fasttrack_transaction AS
SELECT
  id,
  ts - extract_arg(arg_set_id, 'took_ns') AS ts,
  extract_arg(arg_set_id, 'took_ns') AS dur,
  _fasttrack_device(extract_arg(arg_set_id, 'dev')) AS dev,
  extract_arg(arg_set_id, 'transaction') AS journal_transaction,
  _fasttrack_named('transaction_kind', extract_arg(arg_set_id, 'kind')) AS kind,
  extract_arg(arg_set_id, 'trigger') AS trigger_task,
  _fasttrack_named('call_kind', extract_arg(arg_set_id, 'trigger_call')) AS trigger_call,
  extract_arg(arg_set_id, 'carrier') AS carrier,
  extract_arg(arg_set_id, 'handles') AS handles,
  extract_arg(arg_set_id, 'blocks') AS blocks,
  extract_arg(arg_set_id, 'logged') AS logged
FROM ftrace_event
WHERE name = 'io_transaction';

-- What one task pays of a transaction.
CREATE OR REPLACE PERFETTO VIEW fasttrack_share AS
SELECT
  id,
  ts,
  _fasttrack_device(extract_arg(arg_set_id, 'dev')) AS dev,
  extract_arg(arg_set_id, 'transaction') AS journal_transaction,
  extract_arg(arg_set_id, 'task') AS task,
  extract_arg(arg_set_id, 'handles') AS handles,
  extract_arg(arg_set_id, 'blocks') AS blocks,
  extract_arg(arg_set_id, 'through_flusher') AS through_flusher
FROM ftrace_event
WHERE name = 'io_share';

-- What a request asks, of rwbs: F before it is a flush first, F alone a flush.
CREATE OR REPLACE PERFETTO FUNCTION _fasttrack_asked(rwbs STRING)
RETURNS STRING AS
SELECT CASE
  WHEN $rwbs GLOB 'D*' OR $rwbs GLOB 'FD*' THEN iif($rwbs GLOB '*E*', 'secure_erase', 'discard')
  WHEN $rwbs GLOB 'W*' OR $rwbs GLOB 'FW*' THEN 'write'
  WHEN $rwbs GLOB 'R*' OR $rwbs GLOB 'FR*' THEN 'read'
  WHEN $rwbs GLOB 'F*' THEN 'flush'
  ELSE 'other'
END;

-- The events of a request's way, each with those before it of the same place. Perfetto's dev is userspace's.
CREATE OR REPLACE PERFETTO VIEW _fasttrack_way AS
SELECT
  *,
  lag(name, 1) OVER place AS name_1,
  lag(ts, 1) OVER place AS ts_1,
  lag(name, 2) OVER place AS name_2,
  lag(ts, 2) OVER place AS ts_2
FROM (
  SELECT
    id,
    ts,
    name,
    extract_arg(arg_set_id, 'dev') AS dev,
    extract_arg(arg_set_id, 'sector') AS sector,
    extract_arg(arg_set_id, 'nr_sector') * 512 AS bytes,
    _fasttrack_asked(extract_arg(arg_set_id, 'rwbs')) AS operation,
    coalesce(extract_arg(arg_set_id, 'error'), extract_arg(arg_set_id, 'errors'), 0) AS error
  FROM ftrace_event
  WHERE name IN ('block_rq_insert', 'block_rq_issue', 'block_rq_complete')
)
WINDOW place AS (PARTITION BY dev, sector, operation ORDER BY ts, id);

-- A request that has ended: from its insertion, or from its issue where it was not queued.
CREATE OR REPLACE PERFETTO VIEW fasttrack_request AS
SELECT
  id,
  coalesce(inserted, issued, ts) AS ts,
  ts - coalesce(inserted, issued, ts) AS dur,
  ((dev >> 8) & 0xfff) || ':' || ((dev & 0xff) | ((dev >> 12) & 0xfff00)) AS dev,
  operation,
  sector,
  bytes,
  issued - inserted AS queued_ns,
  ts - issued AS device_ns,
  error
FROM (
  SELECT
    *,
    iif(name_1 = 'block_rq_issue', ts_1, NULL) AS issued,
    iif(name_1 = 'block_rq_issue' AND name_2 = 'block_rq_insert', ts_2, NULL) AS inserted
  FROM _fasttrack_way
  WHERE name = 'block_rq_complete'
);

-- Each wait with the call of the same thread that it is in.
CREATE OR REPLACE PERFETTO VIEW fasttrack_call_wait AS
SELECT
  call.id AS call_id,
  call.ts AS call_ts,
  call.dur AS call_dur,
  call.call,
  wait.*
FROM fasttrack_call AS call
JOIN ftrace_event AS called ON called.id = call.id
JOIN fasttrack_wait AS wait ON wait.ts >= call.ts AND wait.ts + wait.dur <= call.ts + call.dur
JOIN ftrace_event AS waited ON waited.id = wait.id AND waited.utid = called.utid
WHERE coalesce(call.interface, 'system_call') = 'system_call';
