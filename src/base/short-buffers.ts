/**
 * Protects writes of strings to short buffers from a defect of Node 24.
 *
 * V8 stores typed arrays of at most 64 bytes in its own heap. `Buffer.prototype.write` passes the address of the
 * string to native code, which first moves the array out of the heap. This allocates memory, so a garbage collection
 * may move the string, and the address is no longer valid: the process receives SIGSEGV or may write other bytes
 * (`FastWriteString` in `node_buffer.cc` of Node 24.21). Access to the property `buffer` moves the array before the
 * write. Each thread has its own prototype, so each entry of a thread imports this file first.
 */

/** V8's flag `--typed-array-max-size-in-heap`. */
const IN_HEAP_BYTES = 64;
const METHODS = ['write', 'utf8Write', 'latin1Write', 'asciiWrite'] as const;

type Write = (this: Buffer, text: string, offset?: unknown, length?: unknown, encoding?: unknown) => number;

for (const name of METHODS) {
  // Only `write` is part of the documented types of Node.
  const original: Write = Reflect.get(Buffer.prototype, name);
  const write: Write = function (text, offset, length, encoding) {
    if (this.byteLength <= IN_HEAP_BYTES) void this.buffer;
    return original.call(this, text, offset, length, encoding);
  };
  Reflect.set(Buffer.prototype, name, write);
}
