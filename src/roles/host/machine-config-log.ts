/** The machine config daemon's lines in a file of their own too, which the pod `machine-config-daemon` shows. */
import { appendFile, mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { createLog, type Log } from '../../base/log.ts';
import { DAEMON } from '../../core/reconcile/machine-config/daemon-set.ts';

/** The file starts again at this size: a host's memory holds it. */
const MAX_BYTES = 256 * 1024;
const MODE = 0o600;

/** What is logged at `log` goes to `path` as well, in order. A file that cannot be written stops nothing. */
export function withLogFile(log: Log, path: string, nowMs: () => number, maxBytes = MAX_BYTES): Log {
  let last: Promise<unknown> = Promise.resolve();
  const write = async (line: string): Promise<void> => {
    await mkdir(dirname(path), { recursive: true });
    const { size } = await stat(path).catch(() => ({ size: 0 }));
    await (size + line.length > maxBytes ? writeFile : appendFile)(path, line, { mode: MODE });
  };
  // Quotes of values stay as they are: scripts look for upstream's sentences in what `oc logs` prints.
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
