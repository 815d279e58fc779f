/** Copies the log of the machine config daemon to a file. The pod `machine-config-daemon` prints this file. */
import { appendFile, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createLog, type Log } from '../../base/log.ts';
import { DAEMON } from '../../openshift/machine-config/core/pools/daemon-set.ts';

/** The file is truncated at this size, because it is on a tmpfs. */
const MAX_BYTES = 256 * 1024;
const MODE = 0o600;

/** Returns a log that also appends its lines to `path` in order. Write errors are ignored. */
export function withLogFile(log: Log, path: string, nowMs: () => number, maxBytes = MAX_BYTES): Log {
  let last: Promise<unknown> = Promise.resolve();
  const write = async (line: string): Promise<void> => {
    await mkdir(dirname(path), { recursive: true });
    const { size } = await stat(path).catch(() => ({ size: 0 }));
    await (size + line.length > maxBytes ? writeFile : appendFile)(path, line, { mode: MODE });
  };
  // Quotation marks in values are not escaped, because scripts search the output of `oc logs` for upstream's sentences.
  const sink = {
    write: (line: string): void => {
      last = last
        .then(() => write(`${line.replaceAll('\\"', '"')}\n`))
        .catch((error: unknown) => log.v(2, 'log file not written', { file: path, error }));
    },
  };
  const file = createLog({ component: DAEMON, level: 0, sink, nowMs });
  return {
    ...log,
    error: (message, fields) => {
      log.error(message, fields);
      file.error(message, fields);
    },
    warn: (message, fields) => {
      log.warn(message, fields);
      file.warn(message, fields);
    },
    info: (message, fields) => {
      log.info(message, fields);
      file.info(message, fields);
    },
  };
}
