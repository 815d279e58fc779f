/** Writes a directory of redacted files as a compressed tar archive of limited size. */
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Transform, Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Pack, pack } from 'tar-stream';
import { adding, type OnProgress } from '../../base/command-line/progress.ts';
import { indexPage } from '../../support-bundle/core/index.ts';
import type { BundleReport, EntryReport, SectionReport } from '../../support-bundle/port.ts';

/** Bytes of the size limit that are reserved for the index page, headers and data that the compressor still buffers. */
const RESERVE = 1 << 20;
const HEADER_BYTES = 1024;
const MIN_PART = 4096;
const ATTEMPTS = 4;

export interface ArchiveOptions {
  /** Directory with the files. */
  readonly from: string;
  readonly to: string;
  /** Name of the directory in the archive. */
  readonly name: string;
  readonly maxBytes: number;
  readonly mtime: Date;
  /** Called with the number of uncompressed bytes that are in the archive. */
  readonly onProgress?: OnProgress;
}

/**
 * Writes the archive. Files that do not fit are cut or dropped, beginning with files at the end of the report. Returns
 * the report with the cut files.
 */
export async function writeArchive(report: BundleReport, options: ArchiveOptions): Promise<BundleReport> {
  const tar = pack();
  let written = 0;
  const count = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      written += chunk.length;
      done(null, chunk);
    },
  });
  const stored = pipeline(
    tar,
    createGzip({ level: 6 }),
    count,
    createWriteStream(options.to, { flags: 'wx', mode: 0o600 }),
  );
  try {
    const remaining = (): number => options.maxBytes - RESERVE - written;
    const [result] = await Promise.all([fill(tar, report, options, remaining), stored]);
    return result;
  } catch (error) {
    tar.destroy();
    throw error;
  }
}

async function fill(
  tar: Pack,
  report: BundleReport,
  options: ArchiveOptions,
  remaining: () => number,
): Promise<BundleReport> {
  const sections: SectionReport[] = [];
  const bytes = report.sections.flatMap(({ entries }) => entries).reduce((sum, entry) => sum + entry.bytes, 0);
  const add = adding(bytes, options.onProgress);
  for (const section of report.sections) {
    const entries: EntryReport[] = [];
    for (const entry of section.entries) {
      entries.push(await addEntry(tar, entry, options, remaining()));
      add(entry.bytes);
    }
    sections.push({ ...section, entries });
  }
  const complete = { ...report, sections };
  const page = Buffer.from(indexPage({ ...complete, sections: sections.map(withoutDropped) }), 'utf8');
  const head = { mode: 0o600, mtime: options.mtime };
  tar.entry({ ...head, name: `${options.name}/index.html` }, page);
  tar.finalize();
  return complete;
}

/**
 * The section without the files that were dropped. They become problems of the section, because the index page must not
 * link to a missing file.
 */
const withoutDropped = (section: SectionReport): SectionReport => ({
  ...section,
  entries: section.entries.filter(({ bytes, cut }) => bytes > 0 || cut !== DROPPED),
  problems: [
    ...section.problems,
    ...section.entries
      .filter(({ bytes, cut }) => bytes === 0 && cut === DROPPED)
      .map(({ path }) => `${path}: ${DROPPED}`),
  ],
});

const DROPPED = 'left out; the bundle is full';

async function addEntry(
  tar: Pack,
  entry: EntryReport,
  { from, name, mtime }: ArchiveOptions,
  remaining: number,
): Promise<EntryReport> {
  const path = join(from, entry.path);
  let keep = entry.bytes;
  for (let attempt = 0; keep + HEADER_BYTES > remaining; attempt += 1) {
    if (remaining < MIN_PART || attempt === ATTEMPTS) return { ...entry, bytes: 0, cut: DROPPED };
    const compressed = await compressedSize(path, entry.bytes - keep);
    if (compressed + HEADER_BYTES <= remaining) break;
    keep = Math.floor((keep * remaining * 0.8) / compressed);
    if (keep < MIN_PART) return { ...entry, bytes: 0, cut: DROPPED };
  }
  const start = entry.bytes - keep;
  const header = { name: `${name}/${entry.path}`, size: keep, mode: 0o600, mtime };
  await pipeline(createReadStream(path, { start }), tar.entry(header));
  return start === 0 ? entry : { ...entry, bytes: keep, cut: 'the beginning is left out; the bundle is full' };
}

async function compressedSize(path: string, start: number): Promise<number> {
  let size = 0;
  const counter = new Writable({
    write(chunk: Buffer, _encoding, done) {
      size += chunk.length;
      done();
    },
  });
  await pipeline(createReadStream(path, { start }), createGzip({ level: 6 }), counter);
  return size;
}
