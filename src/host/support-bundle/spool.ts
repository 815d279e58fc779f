/**
 * A directory with the redacted files of a bundle. Content is redacted before it is written, so that no secret is
 * stored on the disk. It is written in pieces, so that no file is held in memory.
 */
import { type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { parseAllDocuments, stringify } from 'yaml';
import { isDiskFull, messageOf } from '../../base/errors.ts';
import {
  environmentRedactor,
  type KnownValues,
  logRedactor,
  REMOVED,
  redactObject,
  safePath,
  uniquePaths,
} from '../../support-bundle/core/index.ts';
import type { EntryOptions, EntryReport, SectionSink } from '../../support-bundle/port.ts';

const MAX_DOCUMENT_CHARS = 8 << 20;
const PIECE_CHARS = 64 * 1024;
/** Length of a line from which the rest is dropped. The redaction shortens such a line anyway. */
const MAX_LINE_CHARS = 1 << 20;
const MAX_ENTRIES = 4000;

/** Files of one section. */
export interface SectionFiles {
  readonly sink: SectionSink;
  /**
   * Closes all files. Later writes are ignored. `late`: reason why files that are still being written are incomplete.
   */
  finish(late: string | undefined): Promise<{ readonly entries: EntryReport[]; readonly problems: string[] }>;
}

export interface Spool {
  readonly directory: string;
  /** Error of a full disk, after which the bundle cannot be completed. */
  readonly failure: Error | undefined;
  section(maxBytes: number): SectionFiles;
  redact(line: string): string;
}

export function createSpool(directory: string, known: KnownValues, maxEntries = MAX_ENTRIES): Spool {
  const unique = uniquePaths();
  let failure: Error | undefined;
  let entries = 0;
  const section = (maxBytes: number): SectionFiles => {
    const files: EntryFile[] = [];
    const problems: string[] = [];
    let left = maxBytes;
    let closed = false;
    const openEntry = async (path: string, options: EntryOptions): Promise<EntryFile | undefined> => {
      if (closed) return undefined;
      entries += 1;
      if (entries > maxEntries || left <= 0) {
        problems.push(`${path}: left out; ${left <= 0 ? 'the section is full' : `more than ${maxEntries} files`}`);
        return undefined;
      }
      const name = unique(safePath(path));
      const limit = Math.min(left, options.maxBytes ?? left);
      const file = await EntryFile.create(directory, name, limit, options.keepEnd === true);
      files.push(file);
      return file;
    };
    const write = async (path: string, options: EntryOptions, work: (file: EntryFile) => Promise<void>) => {
      try {
        const file = await openEntry(path, options);
        if (file === undefined) return;
        try {
          await work(file);
        } finally {
          await file.finish();
          left -= file.bytes;
        }
      } catch (error) {
        if (isDiskFull(error)) failure ??= error as Error;
        throw error;
      }
    };
    const sink: SectionSink = {
      stream: (path, content, options = {}) =>
        write(path, options, (file) =>
          options.format === 'document'
            ? writeDocument(file, content, known)
            : writeLines(file, content, options, known),
        ),
      object: (path, value) => write(path, {}, (file) => file.write(stringify(redactObject(value, known)))),
      missing: (what, reason) => {
        if (!closed) problems.push(redactLine(`${what}: ${reason}`, known));
      },
    };
    const finish: SectionFiles['finish'] = async (late) => {
      closed = true;
      for (const file of files) await file.finish(late);
      return { entries: files.map((file) => file.report()), problems };
    };
    return { sink, finish };
  };
  return {
    directory,
    section,
    redact: (line) => redactLine(line, known),
    get failure() {
      return failure;
    },
  };
}

export const redactLine = (line: string, known: KnownValues): string => logRedactor(known)(line.replaceAll('\n', ' '));

async function writeLines(
  file: EntryFile,
  content: AsyncIterable<string> | Iterable<string>,
  { format, keepEnd, beginsInMiddle }: EntryOptions,
  known: KnownValues,
): Promise<void> {
  const redact = format === 'env' ? environmentRedactor(known) : logRedactor(known, beginsInMiddle);
  let rest = '';
  let piece = '';
  const flush = async (): Promise<void> => {
    const full = piece;
    piece = '';
    if (full !== '') await file.write(full);
  };
  try {
    for await (const text of content) {
      if (file.closed || (file.full && keepEnd !== true)) break;
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        piece += `${redact(line)}\n`;
        if (piece.length >= PIECE_CHARS) await flush();
      }
      // The redaction shortens such a line, so the rest of the line can be dropped.
      if (rest.length > MAX_LINE_CHARS) rest = rest.slice(0, MAX_LINE_CHARS);
    }
  } finally {
    // Text that was read before an error is written too.
    if (rest !== '') piece += `${redact(rest)}\n`;
    await flush();
  }
}

/** Writes a redacted document. If the document cannot be parsed, only the names of its fields are written. */
async function writeDocument(
  file: EntryFile,
  content: AsyncIterable<string> | Iterable<string>,
  known: KnownValues,
): Promise<void> {
  let text = '';
  for await (const piece of content) {
    text += piece;
    if (text.length > MAX_DOCUMENT_CHARS) throw new Error(`larger than ${MAX_DOCUMENT_CHARS} characters`);
  }
  let redacted: string;
  try {
    redacted = documentsOf(text)
      .map((each) => stringify(redactObject(each, known)))
      .join('---\n');
  } catch (error) {
    const names = text.split('\n').map((line) => /^\s*(?:- )*[\w./"'-]{1,100}:(?=\s|$)/.exec(line)?.[0] ?? '');
    const reason = redactLine(messageOf(error).split('\n')[0] ?? '', known);
    redacted = `# Not parsed (${reason}); values are left out.\n${names
      .filter((name) => name !== '')
      .map((name) => `${name} ${REMOVED}\n`)
      .join('')}`;
  }
  await file.write(redacted);
}

function documentsOf(text: string): unknown[] {
  if (/^\s*[{[]/.test(text)) {
    try {
      return [JSON.parse(text)];
    } catch {
      // The document may be YAML in flow style.
    }
  }
  return parseAllDocuments(text).map((document) => {
    const [error] = document.errors;
    if (error !== undefined) throw error;
    return document.toJS();
  });
}

/**
 * A file of limited size. With `keepEnd`, the file consists of two segments of at most that size: when the current
 * segment is full, it replaces the older one. So the end of the text is always on the disk.
 */
class EntryFile {
  bytes = 0;
  closed = false;
  full = false;
  readonly #path: string;
  readonly #name: string;
  readonly #limit: number;
  readonly #keepEnd: boolean;
  #handle: FileHandle;
  /** Bytes written to the current segment. */
  #length = 0;
  #dropped = 0;
  #hasOlder = false;
  #cut: string | undefined;
  #queue: Promise<void> = Promise.resolve();

  private constructor(path: string, name: string, limit: number, keepEnd: boolean, handle: FileHandle) {
    this.#path = path;
    this.#name = name;
    this.#limit = limit;
    this.#keepEnd = keepEnd;
    this.#handle = handle;
  }

  static async create(directory: string, name: string, limit: number, keepEnd: boolean): Promise<EntryFile> {
    const path = join(directory, name);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return new EntryFile(path, name, limit, keepEnd, await open(path, 'wx', 0o600));
  }

  write(text: string): Promise<void> {
    return this.#enqueue(() => (this.closed ? Promise.resolve() : this.#write(Buffer.from(text, 'utf8'))));
  }

  finish(late?: string): Promise<void> {
    return this.#enqueue(() => (this.closed ? Promise.resolve() : this.#finish(late)));
  }

  report(): EntryReport {
    return { path: this.#name, bytes: this.bytes, cut: this.#cut };
  }

  #enqueue(work: () => Promise<void>): Promise<void> {
    const done = this.#queue.then(work);
    this.#queue = done.catch(() => {
      // The error is returned to the caller of this write.
    });
    return done;
  }

  async #write(content: Buffer): Promise<void> {
    if (this.#length + content.length <= this.#limit) {
      await this.#handle.writeFile(content);
      this.#length += content.length;
      return;
    }
    if (!this.#keepEnd) {
      const part = content.subarray(0, this.#limit - this.#length);
      if (part.length > 0) await this.#handle.writeFile(part);
      this.#length += part.length;
      this.#dropped += content.length - part.length;
      this.full = true;
      return;
    }
    await this.#handle.close();
    await rename(this.#path, `${this.#path}.older`);
    this.#dropped += this.#length;
    this.#hasOlder = true;
    this.#handle = await open(this.#path, 'wx', 0o600);
    this.#length = 0;
    await this.#write(content.subarray(Math.max(0, content.length - this.#limit)));
  }

  async #finish(late: string | undefined): Promise<void> {
    this.closed = true;
    await this.#handle.close();
    this.bytes = this.#length;
    if (this.#hasOlder) await this.#joinSegments();
    if (this.#dropped > 0)
      this.#cut = this.#keepEnd
        ? `the oldest ${this.#dropped} bytes are left out`
        : `${this.full ? 'the end' : 'a part'} is left out`;
    if (late !== undefined) this.#cut = late;
  }

  /**
   * Joins the segments: the end of the older segment, as far as the size limit allows, and then the current segment.
   */
  async #joinSegments(): Promise<void> {
    const older = `${this.#path}.older`;
    const { size } = await stat(older);
    const wanted = Math.min(size, this.#limit - this.#length);
    const joined = await open(`${this.#path}.joined`, 'wx', 0o600);
    try {
      await copyPart(older, size - wanted, joined);
      await copyPart(this.#path, 0, joined);
      this.bytes = wanted + this.#length;
      this.#dropped -= wanted;
    } finally {
      await joined.close();
    }
    await rename(`${this.#path}.joined`, this.#path);
    await rm(older);
  }
}

async function copyPart(from: string, start: number, to: FileHandle): Promise<void> {
  const source = await open(from, 'r');
  try {
    const buffer = Buffer.alloc(1 << 18);
    for (let at = start; ; ) {
      const { bytesRead } = await source.read(buffer, 0, buffer.length, at);
      if (bytesRead === 0) return;
      await to.writeFile(buffer.subarray(0, bytesRead));
      at += bytesRead;
    }
  } finally {
    await source.close();
  }
}
