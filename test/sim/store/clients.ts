import {
  decodeHeader,
  decodeRangeResponse,
  decodeTxnResponse,
  writeDeleteRangeRequest,
  writeModRevisionCompare,
  writeOperation,
  writePutRequest,
  writeRangeRequest,
} from '../../../src/store/core/messages/kv.ts';
import { Reader, type Writer } from '../../../src/wire/protobuf/protobuf.ts';
import { Violation } from './checkers.ts';
import type { Member } from './member.ts';
import { checkOperations, type Operation } from './operations.ts';
import { type Answer, call } from './rpc.ts';
import type { World } from './world.ts';

const KEYS = ['a', 'b', 'c', 'd', 'e', 'f'];
const ATTEMPT_MS = 700;

/** Clients that write, delete, guard and read keys through any member, and record the responses. */
export class Clients {
  readonly #world: World;
  readonly #members: () => readonly Member[];
  #operations: Operation[] = [];
  /** Last known revision of each key. */
  readonly #seen = new Map<string, number>();
  /** Share of writes with relaxed durability. */
  readonly #relaxed: number;
  #values = 0;
  #stopped = false;
  answered = 0;

  constructor(world: World, members: () => readonly Member[]) {
    this.#world = world;
    this.#members = members;
    this.#relaxed = world.random.pick([0.2, 0.95]) ?? 0;
  }

  start(count: number): void {
    for (let i = 0; i < count; i++) this.#next();
  }

  stop(): void {
    this.#stopped = true;
  }

  /** Checks that all responses are consistent with the visible history. */
  check(): void {
    checkOperations(this.#operations, this.#world.checkers);
  }

  /** Checks the completed operations and drops them, because the history is about to be truncated. */
  settle(): void {
    this.check();
    this.#operations = this.#operations.filter(({ outcome }) => outcome !== 'done');
  }

  #next(): void {
    const { timeline, random } = this.#world;
    timeline.after(random.between(5, 80), () => {
      if (this.#stopped) return;
      const member = random.pick(this.#members());
      if (member === undefined) this.#next();
      else this.operate(member, this.#invent(), () => this.#next());
    });
  }

  #invent(): Operation {
    const { random, checkers } = this.#world;
    const key = random.pick(KEYS) ?? 'a';
    const what =
      random.pick(['put', 'put', 'put', 'guarded', 'guarded', 'delete', 'read', 'read', 'read'] as const) ?? 'put';
    const relaxed = (what === 'put' || what === 'guarded') && random.chance(this.#relaxed);
    const serializable = what === 'read' && random.chance(0.3);
    const past = what === 'read' && random.chance(0.2);
    return this.operation(what, key, {
      relaxed,
      serializable,
      guard: random.chance(0.8) ? (this.#seen.get(key) ?? 0) : 0,
      at: past ? Math.max(1, checkers.known - random.below(20)) : 0,
    });
  }

  operation(what: Operation['what'], key: string, more: Partial<Operation> = {}): Operation {
    this.#values += 1;
    return {
      what,
      key,
      value: `${more.relaxed ? 'relaxed' : 'v'}${this.#values}`,
      relaxed: false,
      guard: 0,
      at: 0,
      serializable: false,
      floor: this.#world.checkers.known,
      requestedMs: this.#world.timeline.nowMs,
      outcome: 'open',
      revision: 0,
      succeeded: false,
      deleted: 0,
      found: [],
      ...more,
    };
  }

  operate(member: Member, operation: Operation, done: () => void): void {
    this.#operations.push(operation);
    const { what, relaxed } = operation;
    const path = { put: 'Put', delete: 'DeleteRange', guarded: 'Txn', read: 'Range' }[what];
    const options = { timeoutMs: ATTEMPT_MS, relaxed };
    call(
      this.#world,
      member,
      `/etcdserverpb.KV/${path}`,
      (out) => write(out, operation),
      options,
      (answer) => {
        this.#answered(member, operation, answer);
        done();
      },
    );
  }

  #answered(member: Member, operation: Operation, answer: Answer): void {
    const { trace, timeline, checkers } = this.#world;
    if (answer.kind === 'ok') this.#decode(operation, answer.body);
    else {
      operation.outcome = answer.kind === 'failed' && answer.sure ? 'refused' : 'unknown';
      if (answer.kind === 'failed') trace.count(`answer: ${answer.text}`);
    }
    const { what, key, value, outcome, revision, succeeded } = operation;
    const reported = answer.kind === 'failed' ? answer.text : '';
    trace.add(
      `${timeline.nowMs.toFixed(3)} ${member.name} ${what} ${key} ${value}: ${outcome} ${revision} ${succeeded} ${reported}`,
    );
    if (outcome !== 'done') return;
    this.answered += 1;
    const wrote = what === 'put' || operation.succeeded || operation.deleted > 0;
    if (!operation.serializable && (revision < operation.floor || (wrote && revision === operation.floor)))
      throw new Violation(
        'linearizability',
        `${what} ${key} returned revision ${revision}, after revision ${operation.floor} had been read`,
      );
    if (what === 'put' || operation.succeeded) checkers.wrote(`${what} ${key} ${value}`, operation.requestedMs);
    if (!operation.serializable) checkers.served(`${what} ${key}`, operation.requestedMs);
    checkers.note(revision);
    const [kv] = operation.found;
    this.#seen.set(key, wrote ? (operation.deleted > 0 ? 0 : revision) : (kv?.modRevision ?? 0));
  }

  #decode(operation: Operation, body: Buffer): void {
    operation.outcome = 'done';
    if (operation.what === 'read') {
      const { revision, kvs } = decodeRangeResponse(body);
      operation.revision = revision;
      operation.found = kvs;
    } else if (operation.what === 'guarded') {
      const { revision, succeeded, ranges } = decodeTxnResponse(body);
      operation.revision = revision;
      operation.succeeded = succeeded;
      operation.found = ranges[0]?.kvs ?? [];
    } else {
      const reader = new Reader(body);
      for (let field = reader.field(); field !== 0; field = reader.field()) {
        if (field === 1) operation.revision = decodeHeader(reader.bytes());
        else if (field === 2 && operation.what === 'delete') operation.deleted = reader.int();
        else reader.skip();
      }
    }
  }
}

function write(out: Writer, { what, key, value, guard, at, serializable }: Operation): Writer {
  const bytes = Buffer.from(value, 'latin1');
  if (what === 'put') return writePutRequest(out, { key, value: bytes });
  if (what === 'delete') return writeDeleteRangeRequest(out, { key });
  if (what === 'read') {
    return writeRangeRequest(out, { key, revision: at }).bool(7, serializable);
  }
  writeModRevisionCompare(out, key, guard);
  writeOperation(out, 2, 'put', (inner) => writePutRequest(inner, { key, value: bytes }));
  return writeOperation(out, 3, 'range', (inner) => writeRangeRequest(inner, { key }));
}
