/** Flipped bits on the disk: every store is either reported as damaged or unchanged. A failure names its seed. */
import assert from 'node:assert/strict';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { CodedError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { encodePutEvent } from '../../../src/store/core/messages/event.ts';
import { createSqliteLog } from '../../../src/store/disk/index.ts';
import { EntryKind, type LogState, type StoredEntry } from '../../../src/store/disk/port.ts';
import { Random } from '../../sim/raft/random.ts';
import { perRun } from '../../support/soak.ts';

const SEEDS = perRun(20, 200);
const ROWS = 120;
const FILES = ['revisions.db', 'revisions.db-log'] as const;

interface Content {
  readonly state: LogState;
  readonly rows: readonly StoredEntry[];
  readonly entries: readonly StoredEntry[];
}

let directory = '';
/** A store at a power failure: a part is in the database, the rest in the journal. */
let whole = '';
let content: Content;

function row(revision: number): StoredEntry {
  const value = Buffer.alloc(100 + ((revision * 131) % 1500), revision % 256);
  const key = `k${revision % 7}`;
  const { field } = encodePutEvent({ key, createRevision: 2, modRevision: revision, version: 1, value, lease: 0n });
  return { index: revision, term: 1, kind: EntryKind.revision, revision, lease: 0n, body: field };
}

/** Reads all content, as a store does at its start and in its first hours. Throws CodedError 'corrupt'. */
async function contentOf(data: string): Promise<Content> {
  const log = createSqliteLog({ directory: data, log: silentLog });
  try {
    const state = await log.open(() => {});
    const rows: StoredEntry[] = [];
    await log.load(Number.MAX_SAFE_INTEGER, (some) => rows.push(...some.map(copied)));
    const entries: StoredEntry[] = [];
    for (let from = 1; ; ) {
      const some = await log.entries(from, 1 << 20);
      const last = some.at(-1);
      if (last === undefined) break;
      entries.push(...some.map(copied));
      from = last.index + 1;
    }
    for (let place = 0; ; ) {
      place = await log.scrub(place);
      if (place === 0) break;
    }
    return { state, rows, entries };
  } finally {
    await log.close();
  }
}

const copied = (entry: StoredEntry): StoredEntry => ({ ...entry, body: Buffer.from(entry.body) });

before(async () => {
  directory = await mkdtemp(join(tmpdir(), 'hyperedge-flips-'));
  const data = await mkdtemp(join(directory, 'data-'));
  whole = join(directory, 'whole');
  const log = createSqliteLog({ directory: data, log: silentLog });
  await log.open((error) => assert.fail(error.message));
  const documents = new Map([['cluster', Buffer.from('who belongs to it')]]);
  const leasesGranted = [{ id: 77n, ttlSeconds: 60 }];
  const applied = { index: 0, compacted: 0, leasesGranted, leasesRevoked: [], documents };
  await log.initialise(
    { clusterId: 1n, memberId: 2n },
    {
      entries: [],
      discards: [],
      hardState: { term: 1, vote: undefined, commit: 0 },
      base: { index: 1, term: 0 },
      applied,
    },
  );
  for (let revision = 2; revision < ROWS; revision += 1) {
    await log.commit({ entries: [row(revision)], discards: [] });
    if (revision === ROWS / 2) await log.defragment();
  }
  await cp(data, whole, { recursive: true });
  await log.close();
  const copy = join(directory, 'copy');
  await cp(whole, copy, { recursive: true });
  content = await contentOf(copy);
  assert.equal(content.rows.length, ROWS - 2);
});
after(() => rm(directory, { recursive: true, force: true }));

it(`detects flipped bits in store files or is not affected by them, in ${SEEDS} random runs`, async () => {
  let found = 0;
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const random = new Random(seed);
    const data = join(directory, `seed-${seed}`);
    await cp(whole, data, { recursive: true });
    const name = random.pick(FILES) ?? FILES[0];
    const bytes = await readFile(join(data, name));
    // Bits are flipped only in the used part, because most of the journal is empty.
    const used = bytes.findLastIndex((byte) => byte !== 0);
    for (let flips = 1 + random.below(3); flips > 0; flips -= 1) {
      const at = random.below(used);
      bytes[at] = (bytes[at] as number) ^ (1 << random.below(8));
    }
    await writeFile(join(data, name), bytes);
    const read = await contentOf(data).catch((error: unknown) => {
      assert.ok(error instanceof CodedError && error.code === 'corrupt', `seed ${seed}: ${String(error)}`);
      return undefined;
    });
    await rm(data, { recursive: true });
    if (read === undefined) {
      found += 1;
      continue;
    }
    // The last record of the journal may count as one that was being written at the power failure.
    const torn = name === 'revisions.db-log' && read.rows.length === content.rows.length - 1;
    const due = torn ? { ...content, rows: content.rows.slice(0, -1), entries: content.entries.slice(0, -1) } : content;
    assert.deepEqual(read, due, `seed ${seed}`);
  }
  assert.ok(found > SEEDS / 2, `${found} of ${SEEDS} were found`);
});
