/**
 * The logging interface. Each event is one line with time, level, component, message and key=value fields. Verbosity
 * levels are those of klog and OKD's `--loglevel`: 0 is always shown, 2 is the default, 4 is for debugging, 6 shows
 * requests, 8 shows bodies, 10 shows everything.
 */
export interface Log {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** Shown at any log level (klog V(0)). */
  info(message: string, fields?: LogFields): void;
  /** Shown if `level` is at most the configured log level (klog V(level)). */
  v(level: number, message: string, fields?: LogFields): void;
  /** Whether `v(level, …)` would print. Use it to avoid computing expensive fields. */
  enabled(level: number): boolean;
  /** Returns a logger for a sub-component. Its name is `parent/name`. */
  named(name: string): Log;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Destination of formatted lines: stderr, or an array in tests. */
export interface LogSink {
  write(line: string): void;
}

export interface LogOptions {
  readonly component: string;
  readonly level: number;
  /** Lowest severity that is shown. Default: `info`. */
  readonly least?: 'info' | 'warn' | 'error';
  readonly sink: LogSink;
  readonly nowMs: () => number;
}

type Severity = 'E' | 'W' | 'I';

const SHOWN = { info: 'EWI', warn: 'EW', error: 'E' } as const;

/** Creates the standard logger: `2026-01-02T03:04:05.678Z I apiserver message key=value`. */
export function createLog(options: LogOptions): Log {
  const shown: string = SHOWN[options.least ?? 'info'];
  const emit = (severity: Severity, message: string, fields?: LogFields): void => {
    if (!shown.includes(severity)) return;
    options.sink.write(
      `${new Date(options.nowMs()).toISOString()} ${severity} ${options.component} ${oneLine(message)}${formatFields(fields)}`,
    );
  };
  return {
    error: (message, fields) => emit('E', message, fields),
    warn: (message, fields) => emit('W', message, fields),
    info: (message, fields) => emit('I', message, fields),
    v: (level, message, fields) => {
      if (level <= options.level) emit('I', message, fields);
    },
    enabled: (level) => level <= options.level && shown.includes('I'),
    named: (name) => createLog({ ...options, component: `${options.component}/${name}` }),
  };
}

/** A logger that discards everything. */
export const silentLog: Log = {
  error: () => {},
  warn: () => {},
  info: () => {},
  v: () => {},
  enabled: () => false,
  named: () => silentLog,
};

function formatFields(fields: LogFields | undefined): string {
  if (fields === undefined) return '';
  let text = '';
  for (const [key, value] of Object.entries(fields)) {
    if (value !== undefined) text += ` ${key}=${formatValue(value)}`;
  }
  return text;
}

function formatValue(value: unknown): string {
  if (value instanceof Error) return JSON.stringify(value.message);
  if (typeof value === 'string') return /^[\w./:@%+-]+$/.test(value) ? value : JSON.stringify(value);
  if (typeof value === 'object' && value !== null) return JSON.stringify(value);
  return String(value);
}

/** Replaces line breaks, so that every event is one line. */
function oneLine(message: string): string {
  return message.includes('\n') ? message.replaceAll(/\s*\n\s*/g, ' ⏎ ') : message;
}
