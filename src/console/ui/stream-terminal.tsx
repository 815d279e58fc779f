/** Terminal on a stream of the API: exec, attach, or the serial console of a rig. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { sanitizeText } from '../data/plain-text.ts';
import { EXEC_PROTOCOLS, ExecSession } from '../data/pods/exec.ts';
import { openSocket } from '../session/request.ts';
import { showFailure } from '../shell/toasts.tsx';

/** Ways in which the buttons for keys use the open terminal. */
interface TouchInput {
  send(text: string): void;
  focus(): void;
}

export interface StreamTerminalProps {
  readonly path: string;
  /** Whether the size of the terminal is sent. False for serial consoles, which cannot use it. */
  readonly hasSize?: boolean;
  readonly children?: preact.ComponentChildren;
}

/** Keys that keyboards of phones do not have, with what a terminal sends for them. */
const TOUCH_KEYS: readonly (readonly [label: string, text: string])[] = [
  ['Ctrl-C', '\x03'],
  ['Ctrl-D', '\x04'],
  ['Ctrl-Z', '\x1a'],
  ['Esc', '\x1b'],
  ['Tab', '\t'],
  ['↑', '\x1b[A'],
  ['↓', '\x1b[B'],
  ['←', '\x1b[D'],
  ['→', '\x1b[C'],
];

/** Input that a terminal sends for a letter that is typed while Ctrl is held. */
const withCtrl = (text: string): string =>
  /^[a-z@[\\\]^_]$/i.test(text) ? String.fromCharCode(text.toUpperCase().charCodeAt(0) & 0x1f) : text;

/** Shows a stream in a terminal. Output is written only to the terminal, never into the page. */
export function StreamTerminal({ path, hasSize = true, children }: StreamTerminalProps) {
  const [attempt, setAttempt] = useState(0);
  const [status, setStatus] = useState('connecting');
  const parent = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLParagraphElement>(null);
  const input = useRef<TouchInput>(undefined);
  const [isCtrl, setCtrl] = useState(false);
  const ctrl = useRef(false);
  ctrl.current = isCtrl;
  useEffect(() => {
    let isShown = true;
    let close = (): void => undefined;
    setStatus('connecting');
    void import('../widgets/terminal.ts').then(({ openTerminal }) => {
      if (!isShown || parent.current === null) return;
      const opened = openTerminal(parent.current, { onLeave: () => end.current?.focus() });
      const { terminal } = opened;
      const session = new ExecSession(openSocket(path, EXEC_PROTOCOLS), {
        onOpen: () => {
          setStatus('connected');
          if (hasSize) session.resize(terminal.cols, terminal.rows);
          terminal.focus();
        },
        onOutput: (bytes) => terminal.write(bytes),
        onEnd: (message, exitCode) => {
          if (isShown)
            setStatus(
              `ended${exitCode === undefined ? '' : ` with exit code ${exitCode}`}${message === '' ? '' : `: ${sanitizeText(message)}`}`,
            );
        },
      });
      terminal.onData((text) => {
        void session.write(ctrl.current ? withCtrl(text) : text);
        setCtrl(false);
      });
      input.current = { send: (text) => void session.write(text), focus: () => terminal.focus() };
      if (hasSize) terminal.onResize(({ cols, rows }) => session.resize(cols, rows));
      close = () => {
        session.close();
        opened.close();
      };
    }, showFailure);
    return () => {
      isShown = false;
      close();
    };
  }, [path, hasSize, attempt]);
  return (
    <>
      <div class="row">
        {children}
        <button type="button" onClick={() => setAttempt(attempt + 1)}>
          Connect again
        </button>
        <span class="muted" aria-live="polite">
          {status}
        </span>
      </div>
      <section class="row touch-keys" aria-label="Keys of the terminal">
        <button
          type="button"
          aria-pressed={isCtrl}
          onClick={() => {
            setCtrl(!isCtrl);
            input.current?.focus();
          }}
        >
          Ctrl
        </button>
        {TOUCH_KEYS.map(([label, text]) => (
          <button
            key={label}
            type="button"
            onClick={() => {
              input.current?.send(text);
              input.current?.focus();
            }}
          >
            {label}
          </button>
        ))}
      </section>
      <div ref={parent} class="terminal" />
      <p ref={end} class="muted" tabIndex={-1}>
        Tab goes into the terminal; Ctrl-] leaves it.
      </p>
    </>
  );
}
