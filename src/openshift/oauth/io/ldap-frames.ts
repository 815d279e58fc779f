/**
 * Validates LDAP messages before the LDAP library parses them. The library would loop and exhaust the memory if a
 * string is longer than its message. Source: RFC 4511 §4.1.1 to §4.5.3 and §5.1 (definite lengths only).
 */
interface Element {
  readonly tag: number;
  /** Positions of the first byte of the content and of the byte after the content. */
  readonly start: number;
  readonly end: number;
}

/** Maximum size of a message. The result of a search for one user is far smaller. */
const MAX_MESSAGE = 1 << 20;
const TAG = { integer: 0x02, string: 0x04, enumerated: 0x0a, sequence: 0x30, set: 0x31 } as const;
const RESULTS = new Set([0x61, 0x65, 0x78]);
const ENTRY = 0x64;
const REFERENCE = 0x73;
const REFERRAL = 0xa3;
/** Optional elements of a result: referral, SASL credentials, and the name and value of an extended response. */
const MORE = new Set([REFERRAL, 0x87, 0x8a, 0x8b]);

export class LdapFrames {
  #rest: Buffer = Buffer.alloc(0);

  /**
   * Adds received bytes and returns the messages that are now complete, without their controls, which no request uses.
   * Throws an Error if a message is invalid.
   */
  push(chunk: Buffer): Buffer[] {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: Buffer[] = [];
    for (;;) {
      const element = headerAt(bytes, 0, bytes.length);
      if (element === undefined) break;
      if (element.tag !== TAG.sequence || element.end > MAX_MESSAGE) throw bad();
      if (element.end > bytes.length) break;
      messages.push(checked(bytes, element));
      bytes = bytes.subarray(element.end);
    }
    this.#rest = bytes;
    return messages;
  }
}

const bad = (): Error => new Error('the server sent an invalid LDAP message');

/** Parses the header of an element; undefined if the header is incomplete. */
function headerAt(bytes: Buffer, at: number, limit: number): Element | undefined {
  if (limit - at < 2) return undefined;
  const tag = bytes[at] as number;
  const first = bytes[at + 1] as number;
  if ((tag & 0x1f) === 0x1f || first === 0x80 || first > 0x84) throw bad();
  const long = first < 0x80 ? 0 : first - 0x80;
  const start = at + 2 + long;
  if (start > limit) return undefined;
  return { tag, start, end: start + (long === 0 ? first : bytes.readUIntBE(at + 2, long)) };
}

function children(bytes: Buffer, { start, end }: Element): Element[] {
  const found: Element[] = [];
  for (let at = start; at < end; ) {
    const element = headerAt(bytes, at, end);
    if (element === undefined || element.end > end) throw bad();
    found.push(element);
    at = element.end;
  }
  return found;
}

function all(bytes: Buffer, element: Element, tag: number): Element[] {
  const found = children(bytes, element);
  if (found.some((each) => each.tag !== tag)) throw bad();
  return found;
}

function checked(bytes: Buffer, whole: Element): Buffer {
  const [id, operation, ...controls] = children(bytes, whole);
  if (id?.tag !== TAG.integer || operation === undefined || controls.length > 1) throw bad();
  const idBytes = id.end - id.start;
  if (idBytes < 1 || idBytes > 4) throw bad();
  if (RESULTS.has(operation.tag)) checkResult(bytes, operation);
  else if (operation.tag === ENTRY) checkEntry(bytes, operation);
  else if (operation.tag === REFERENCE) all(bytes, operation, TAG.string);
  else throw bad();
  const content = bytes.subarray(whole.start, operation.end);
  const head = Buffer.from([TAG.sequence, 0x84, 0, 0, 0, 0]);
  head.writeUInt32BE(content.length, 2);
  return Buffer.concat([head, content]);
}

function checkResult(bytes: Buffer, operation: Element): void {
  const [code, name, text, ...more] = children(bytes, operation);
  if (code?.tag !== TAG.enumerated || code.end - code.start !== 1) throw bad();
  if (name?.tag !== TAG.string || text?.tag !== TAG.string) throw bad();
  for (const each of more) {
    if (!MORE.has(each.tag)) throw bad();
    if (each.tag === REFERRAL) all(bytes, each, TAG.string);
  }
}

function checkEntry(bytes: Buffer, operation: Element): void {
  const [name, attributes, ...more] = children(bytes, operation);
  if (name?.tag !== TAG.string || attributes?.tag !== TAG.sequence || more.length > 0) throw bad();
  for (const attribute of all(bytes, attributes, TAG.sequence)) {
    const [type, values, ...others] = children(bytes, attribute);
    if (type?.tag !== TAG.string || values?.tag !== TAG.set || others.length > 0) throw bad();
    all(bytes, values, TAG.string);
  }
}
