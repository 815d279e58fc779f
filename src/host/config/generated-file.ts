/**
 * Generated configuration files that administrators may edit, as in OKD. An unedited file is updated from the bootstrap
 * file; an edited one is kept.
 */

import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { stringify } from 'yaml';
import { CodedError, messageOf } from '../../base/errors.ts';
import { sha256Hex } from '../../wire/digest.ts';

const MARK = '# Written by hyperedge from bootstrap.yaml. Edit it as you like: an edited file is kept. Mark: ';

export type GeneratedOutcome = 'written' | 'unchanged' | 'kept';

/** Writes `document` as YAML to `path`. Throws CodedError 'unwritable'. */
export async function writeGenerated(path: string, document: unknown, mode = 0o600): Promise<GeneratedOutcome> {
  const body = stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
  const text = `${MARK}${markOf(body)}\n${body}`;
  try {
    const present = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined;
      throw error;
    });
    if (present === text) return 'unchanged';
    if (present !== undefined && wasEdited(present)) return 'kept';
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const temporary = `${path}.new`;
    await writeFile(temporary, text, { mode });
    await rename(temporary, path);
    return 'written';
  } catch (error) {
    throw new CodedError('unwritable', `cannot write ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * Changes the body of a generated file. An unedited file receives a new header with the hash of the new body; an edited
 * file remains marked as edited.
 */
export function rewriteGenerated(text: string, change: (body: string) => string): string {
  if (wasEdited(text) || !text.startsWith(MARK)) return change(text);
  const body = change(text.slice(text.indexOf('\n') + 1));
  return `${MARK}${markOf(body)}\n${body}`;
}

/**
 * Whether an administrator has edited the file. An empty file counts as unedited, because a power failure may leave
 * one.
 */
function wasEdited(text: string): boolean {
  if (text.trim() === '') return false;
  const end = text.indexOf('\n');
  const first = end < 0 ? text : text.slice(0, end);
  return !(first.startsWith(MARK) && first.slice(MARK.length) === markOf(text.slice(end + 1)));
}

function markOf(body: string): string {
  return sha256Hex(body).slice(0, 16);
}
