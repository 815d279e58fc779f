import assert from 'node:assert/strict';
import { it } from 'node:test';
import {
  EventType,
  encodeDeleteEvent,
  encodedValue,
  encodePutEvent,
  putField,
  splitEvents,
  withPrevious,
} from '../../../../src/store/core/messages/event.ts';
import { Writer } from '../../../../src/wire/protobuf/protobuf.ts';

/** Straightforward encoder, message by message, as an oracle. */
const plain = {
  kv: (fields: (out: Writer) => Writer): Buffer => fields(new Writer()).finish(),
  event: (type: number, kv: Buffer, previous?: Buffer): Buffer => {
    const event = new Writer().int(1, type).message(2, kv);
    if (previous !== undefined) event.message(3, previous);
    return new Writer().message(11, event.finish()).finish();
  },
};
const asField2 = (kv: Buffer): Buffer => new Writer().message(2, kv).finish();

it('encodes events of every size with the same bytes as a plain encoder, and splits them again', () => {
  const encoded: Array<{ field: Buffer; expected: Buffer }> = [];
  for (const keyLength of [1, 60, 110, 118, 130, 1000, 1024, 16_300, 20_000]) {
    for (const valueLength of [0, 1, 100, 127, 128, 16_250, 16_384, 100_000]) {
      const key = 'k'.repeat(keyLength);
      const value = Buffer.alloc(valueLength, 'v');
      const put = { key, createRevision: 5, modRevision: 300, version: 7, value, lease: valueLength === 1 ? 0n : -9n };
      const kv = plain.kv((out) =>
        out.latin1(1, key).int(2, 5).int(3, 300).int(4, 7).bytes(5, value).big(6, put.lease),
      );
      const gone = plain.kv((out) => out.latin1(1, key).int(3, 301));
      const made = encodePutEvent(put);
      const deleted = encodeDeleteEvent(key, 301);
      assert.deepEqual(made.kv, asField2(kv));
      assert.deepEqual(deleted.kv, asField2(gone));
      assert.deepEqual(encodedValue(made.kv), value);
      assert.deepEqual(putField(made.kv), made.field);
      encoded.push({ field: made.field, expected: plain.event(EventType.put, kv) });
      encoded.push({ field: deleted.field, expected: plain.event(EventType.delete, gone) });
      assert.deepEqual(withPrevious(deleted.field, made.kv), plain.event(EventType.delete, gone, kv));
      const [first, second] = splitEvents(Buffer.concat([made.field, deleted.field]));
      assert.deepEqual(first, { type: 0, key, createRevision: 5, version: 7, lease: put.lease, ...made });
      assert.deepEqual(second, { type: 1, key, createRevision: 0, version: 0, lease: 0n, ...deleted });
    }
  }
  // Later events must not overwrite earlier ones.
  for (const { field, expected } of encoded) assert.deepEqual(field, expected);
});
