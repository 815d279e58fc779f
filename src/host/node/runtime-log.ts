/** Log of the embedded runtime. A ContainerRuntimeConfig sets its level, which may change while pods run. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Log } from '../../base/log.ts';
import {
  RUNTIME_DIRECTORY,
  RUNTIME_LEVELS,
  type RuntimeLevel,
} from '../../openshift/machine-config/core/pools/node-settings.ts';

export interface RuntimeLog {
  readonly log: Log;
  /** Reads the log level in the pool's files and applies it. */
  follow(): Promise<void>;
}

/** klog verbosity up to which messages are logged at each level, even if the host's own level is lower. */
const VERBOSITY: Readonly<Partial<Record<RuntimeLevel, number>>> = { debug: 4, trace: 8 };
const rank = (level: RuntimeLevel): number => RUNTIME_LEVELS.indexOf(level);

export function createRuntimeLog(log: Log, root: string): RuntimeLog {
  let current: RuntimeLevel = 'info';
  return {
    log: atLevel(log, () => current),
    follow: async () => {
      const text = await readFile(join(root, RUNTIME_DIRECTORY, '01-ctrcfg-logLevel'), 'utf8').catch(() => '');
      const named = /^\s*log_level\s*=\s*"([a-z]+)"\s*$/m.exec(text)?.[1];
      const next = RUNTIME_LEVELS.find((each) => each === named) ?? 'info';
      if (next !== current) log.info('log level of the runtime changed', { from: current, to: next });
      current = next;
    },
  };
}

function atLevel(log: Log, current: () => RuntimeLevel): Log {
  const shows = (level: RuntimeLevel): boolean => rank(current()) >= rank(level);
  return {
    error: (message, fields) => {
      if (shows('error')) log.error(message, fields);
    },
    warn: (message, fields) => {
      if (shows('warn')) log.warn(message, fields);
    },
    info: (message, fields) => {
      if (shows('info')) log.info(message, fields);
    },
    v: (level, message, fields) => {
      if (level <= (VERBOSITY[current()] ?? -1)) log.info(message, fields);
      else if (shows('info')) log.v(level, message, fields);
    },
    enabled: (level) => level <= (VERBOSITY[current()] ?? -1) || (shows('info') && log.enabled(level)),
    named: (name) => atLevel(log.named(name), current),
  };
}
