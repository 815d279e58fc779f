import type { RpcMessage } from '../../wire/grpc/port.ts';
import { Writer } from '../../wire/protobuf/protobuf.ts';
import type { Answer, Decision, RangeAnswer } from '../core/mvcc/machine.ts';

/** One writer is shared by all responses, because encoding is synchronous and `finish` copies the message. */
const writer = new Writer(16 << 10);
const NO_HEADER = Buffer.alloc(0);
/**
 * Responses with more bytes of key-values than this are sent in pieces, so that they are copied only once, to the
 * socket's buffer.
 */
const COPIED = 8 << 10;

/** Writes responses that begin with etcd's ResponseHeader. */
export class Encoder {
  readonly #clusterId: bigint;
  readonly #memberId: bigint;
  readonly #fixed: Buffer;
  /** Raft's term, for the headers. */
  term = 1;

  constructor(clusterId: bigint, memberId: bigint) {
    this.#clusterId = clusterId;
    this.#memberId = memberId;
    this.#fixed = new Writer(32).big(1, clusterId).big(2, memberId).finish();
  }

  get clusterId(): bigint {
    return this.#clusterId;
  }

  get memberId(): bigint {
    return this.#memberId;
  }

  /** Resets the shared writer, writes the header and returns the writer. */
  begin(revision: number): Writer {
    writer.reset();
    const mark = writer.begin(1);
    return writer.raw(this.#fixed).int(3, revision).int(4, this.term).end(mark);
  }

  range(answer: RangeAnswer, revision: number): RpcMessage {
    let bytes = 0;
    for (const kv of answer.kvs) bytes += kv.length;
    if (bytes <= COPIED) return rangeBody(this.begin(revision), answer).finishBriefly();
    const pieces: Uint8Array[] = [this.begin(revision).finishBriefly()];
    for (const kv of answer.kvs) pieces.push(kv);
    pieces.push(rangeEnd(writer.reset(), answer).finishBriefly());
    return pieces;
  }

  put(previous: Buffer | undefined, revision: number): Buffer {
    const out = this.begin(revision);
    if (previous !== undefined) out.raw(previous);
    return out.finishBriefly();
  }

  deleted(deleted: number, previous: readonly Buffer[], revision: number): Buffer {
    const out = this.begin(revision).int(2, deleted);
    for (const kv of previous) asThird(out, kv);
    return out.finishBriefly();
  }

  txn(decision: Decision): Buffer {
    const out = this.begin(decision.revision).bool(2, decision.answer.succeeded);
    const now = { revision: decision.decided === undefined ? decision.revision : decision.revision - 1 };
    for (const answer of decision.answer.answers) operation(out, answer, now, decision.revision);
    return out.finishBriefly();
  }
}

function rangeBody(out: Writer, answer: RangeAnswer): Writer {
  if (answer.keysOnly) {
    for (const version of answer.versions) {
      const mark = out.begin(2);
      out
        .latin1(1, version.key)
        .int(2, version.createRevision)
        .int(3, version.revision)
        .int(4, version.version)
        .big(6, version.lease)
        .end(mark);
    }
  } else for (const kv of answer.kvs) out.raw(kv);
  return rangeEnd(out, answer);
}

function rangeEnd(out: Writer, answer: RangeAnswer): Writer {
  return out.bool(3, answer.more).int(4, answer.count);
}

/** Writes a key-value, which is stored as field 2, as field 3. */
function asThird(out: Writer, kv: Buffer): void {
  out.varint(3 * 8 + 2).raw(kv.subarray(1));
}

/** Current revision while a transaction's responses are written in order. It advances with the first write. */
interface Now {
  revision: number;
}

/**
 * Writes one ResponseOp. As in etcd, inner headers carry only the revision, which is the previous revision until the
 * first write.
 */
function operation(out: Writer, answer: Answer, now: Now, written: number): void {
  if (answer.kind === 'put' || (answer.kind === 'delete' && answer.deleted > 0)) now.revision = written;
  const { revision } = now;
  const op = out.begin(3);
  if (answer.kind === 'range') {
    const mark = out.begin(1);
    innerHeader(out, revision);
    rangeBody(out, answer).end(mark);
  } else if (answer.kind === 'put') {
    const mark = out.begin(2);
    innerHeader(out, revision);
    if (answer.previous !== undefined) out.raw(answer.previous);
    out.end(mark);
  } else if (answer.kind === 'delete') {
    const mark = out.begin(3);
    innerHeader(out, revision).int(2, answer.deleted);
    for (const kv of answer.previous) asThird(out, kv);
    out.end(mark);
  } else {
    // etcd leaves the header of a nested transaction empty.
    const mark = out.begin(4);
    out.message(1, NO_HEADER).bool(2, answer.succeeded);
    for (const nested of answer.answers) operation(out, nested, now, written);
    out.end(mark);
  }
  out.end(op);
}

function innerHeader(out: Writer, revision: number): Writer {
  const mark = out.begin(1);
  return out.int(3, revision).end(mark);
}
