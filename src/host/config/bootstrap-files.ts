/**
 * The bootstrap file and its drop-ins: `bootstrap.yaml`, then `bootstrap.yaml.d/*.yaml` sorted by name. Each is a
 * complete document; a later one replaces scalars and lists and adds to mappings.
 */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError, messageOf } from '../../base/errors.ts';
import { parseWithLines } from '../../wire/strict-yaml.ts';
import { type BootstrapFile, bootstrapField } from './bootstrap.ts';

export interface BootstrapFiles {
  readonly file: BootstrapFile;
  /** Existing files in the order in which they are merged. */
  readonly paths: readonly string[];
  /** `file:line` that sets the field at `path`; undefined if the field has its default. */
  origin(path: readonly string[]): string | undefined;
}

/**
 * Reads the bootstrap file and its drop-ins; undefined if no file exists. Throws CodedError 'bad-config' with file,
 * line and field.
 */
export async function readBootstrap(file: string): Promise<BootstrapFiles | undefined> {
  const dropIns = await list(`${file}.d`);
  const documents: (ReturnType<typeof parse> & { readonly path: string })[] = [];
  for (const path of [file, ...dropIns]) {
    const text = await read(path);
    if (text !== undefined) documents.push({ path, ...parse(text, path) });
  }
  if (documents.length === 0) return undefined;
  const merged = documents.reduce<unknown>((before, { value }) => merge(before, value), undefined);
  return {
    file: merged as BootstrapFile,
    paths: documents.map(({ path }) => path),
    origin: (path) => {
      for (const { path: source, lineOf } of documents.toReversed()) {
        const line = lineOf(path);
        if (line !== undefined) return `${source}:${line}`;
      }
      return undefined;
    },
  };
}

const parse = (text: string, path: string) => parseWithLines(text, path, bootstrapField);

/** Merges mappings and replaces all other values. */
function merge(before: unknown, after: unknown): unknown {
  if (before instanceof Map && after instanceof Map) {
    const merged = new Map<unknown, unknown>(before);
    for (const [key, value] of after) merged.set(key, merge(merged.get(key), value));
    return merged;
  }
  if (!isMapping(before) || !isMapping(after)) return after;
  const merged: Record<string, unknown> = { ...before };
  for (const [key, value] of Object.entries(after)) merged[key] = merge(merged[key], value);
  return merged;
}

const isMapping = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Map);

async function list(directory: string): Promise<string[]> {
  try {
    const names = (await readdir(directory)).filter((name) => /^[^.].*\.ya?ml$/.test(name));
    return names.sort().map((name) => join(directory, name));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw new CodedError('bad-config', `cannot read ${directory}: ${messageOf(error)}`, { cause: error });
  }
}

async function read(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CodedError('bad-config', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}
