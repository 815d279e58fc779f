/**
 * `/etc/origin/master/master.env`: shell-like assignments that are read whenever a control-plane component starts.
 * `OPTIONS=--loglevel=N` and `DEBUG_LOGLEVEL=N` are supported; `OPTIONS` takes precedence. Source: OKD 3.11 "Master and
 * node configuration".
 */
import { readFile } from 'node:fs/promises';
import { CodedError } from '../../base/errors.ts';

export const MASTER_ENV = 'OPTIONS=--loglevel=2\nDEBUG_LOGLEVEL=2\n';

/** The log level in the file; undefined if there is none. Throws CodedError 'bad-config' with the line. */
export async function readMasterLogLevel(file: string): Promise<number | undefined> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch {
    return undefined;
  }
  return parseMasterLogLevel(text, file);
}

export function parseMasterLogLevel(text: string, file: string): number | undefined {
  let fromOptions: number | undefined;
  let fromDebug: number | undefined;
  for (const [index, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const match = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(?:"([^"]*)"|'([^']*)'|([^\s"']*))$/.exec(line);
    if (match === null) throw new CodedError('bad-config', `${file}:${index + 1}: not of the form NAME=value`);
    const value = match[2] ?? match[3] ?? match[4] ?? '';
    if (match[1] === 'DEBUG_LOGLEVEL') fromDebug = level(value, file, index + 1, 'DEBUG_LOGLEVEL');
    if (match[1] === 'OPTIONS') {
      for (const option of value.split(/\s+/)) {
        const given = /^--loglevel=(.*)$/.exec(option)?.[1];
        if (given !== undefined) fromOptions = level(given, file, index + 1, 'OPTIONS');
      }
    }
  }
  return fromOptions ?? fromDebug;
}

function level(text: string, file: string, line: number, name: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value > 10) {
    throw new CodedError('bad-config', `${file}:${line}: ${name}: "${text}" is not a log level from 0 to 10`);
  }
  return value;
}
