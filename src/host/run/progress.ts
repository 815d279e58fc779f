/** Start-up progress: steps with their time on a terminal, plain lines elsewhere. */
import type { StartStage } from '../../base/services.ts';

export interface Progress {
  /** Reports a completed step. */
  step(text: string): void;
  /** Prints a note without a time. */
  note(text: string): void;
  /** Prints a note on a terminal only. */
  summary(text: string): void;
}

/** A stage that takes less time is not shown. */
const SHOWN_MS = 20;

/** The stages that took noticeable time, such as `started 41 services in 1.20 s: runtime 0.40 s, files 0.20 s`. */
export function slowStages(stages: readonly StartStage[]): string {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const total = stages.reduce((sum, { ms }) => sum + ms, 0);
  const slow = stages.filter(({ ms }) => ms >= SHOWN_MS).map(({ name, ms }) => `${name} ${seconds(ms)}`);
  const started = `started ${stages.length} service${stages.length === 1 ? '' : 's'} in ${seconds(total)}`;
  return slow.length === 0 ? started : `${started}: ${slow.join(', ')}`;
}

export interface ProgressOptions {
  readonly write: (text: string) => void;
  readonly terminal: boolean;
  readonly nowMs: () => number;
}

export function createProgress({ write, terminal, nowMs }: ProgressOptions): Progress {
  const begin = nowMs();
  const seconds = (): string => `${((nowMs() - begin) / 1000).toFixed(2)} s`;
  return {
    step: (text) => {
      write(terminal ? `\u001b[32m✔\u001b[0m ${seconds().padStart(8)}  ${text}\n` : `${text} after ${seconds()}\n`);
    },
    note: (text) => write(terminal ? `            ${text}\n` : `${text}\n`),
    summary: (text) => {
      if (terminal) write(`            ${text}\n`);
    },
  };
}
