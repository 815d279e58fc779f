/** Start-up progress: steps with their time on a terminal, plain lines elsewhere. */
export interface Progress {
  /** Reports a completed step. */
  step(text: string): void;
  /** Prints a note without a time. */
  note(text: string): void;
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
  };
}
