/** D-Bus messages as a server writes them: with a reply serial and a sender, which calls do not have. */
import { Writer } from '../../../../src/wire/dbus/dbus-messages.ts';

export interface Reply {
  readonly type: number;
  readonly serial: number;
  readonly member?: string;
  readonly errorName?: string;
  readonly sender?: string;
  readonly signature?: string;
  readonly body?: (writer: Writer) => void;
}

export function encodeReply(reply: Reply): Buffer {
  const body = new Writer();
  reply.body?.(body);
  const writer = new Writer();
  for (const byte of [0x6c, reply.type, 1, 1]) writer.byte(byte);
  writer.uint32(body.result.length);
  writer.uint32(1);
  writer.array(8, () => {
    if (reply.serial > 0) {
      writer.byte(5);
      writer.variant('u', () => writer.uint32(reply.serial));
    }
    for (const [code, value] of [
      [3, reply.member],
      [4, reply.errorName],
      [7, reply.sender],
    ] as const) {
      if (value === undefined) continue;
      writer.align(8);
      writer.byte(code);
      writer.variant('s', () => writer.string(value));
    }
    if (reply.signature === undefined) return;
    const { signature } = reply;
    writer.align(8);
    writer.byte(8);
    writer.variant('g', () => writer.signature(signature));
  });
  writer.align(8);
  writer.raw(body.result);
  return writer.result;
}
