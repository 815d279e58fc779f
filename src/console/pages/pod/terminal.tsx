import { useEffect, useRef, useState } from 'preact/hooks';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { questionOf } from '../../data/access.ts';
import { EXEC_PROTOCOLS, ExecSession, execPath } from '../../data/exec.ts';
import { execCommand } from '../../data/kubectl.ts';
import { PODS } from '../../data/resources.ts';
import { openSocket } from '../../session/request.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { showFailure } from '../../shell/toasts.tsx';
import { useAccess } from '../../ui/hooks.ts';
import { containersOf } from './logs.tsx';

const SHELL = ['sh', '-c', 'command -v bash >/dev/null && exec bash || exec sh'];

/** Terminal in a container. Output goes to the terminal only, never into the page. */
export function TerminalView({ pod }: { readonly pod: Pod }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const containers = containersOf(pod);
  const [container, setContainer] = useState(containers[0] ?? '');
  const [attempt, setAttempt] = useState(0);
  const [status, setStatus] = useState('connecting');
  const parent = useRef<HTMLDivElement>(null);
  const verdict = useAccess(questionOf('create', PODS, namespace, { name, subresource: 'exec' }));
  useCommand(execCommand(namespace, name, container, ['sh']));
  useEffect(() => {
    if (!verdict.allowed) return;
    let isShown = true;
    let close = (): void => undefined;
    setStatus('connecting');
    void import('../../widgets/terminal.ts').then(({ openTerminal }) => {
      if (!isShown || parent.current === null) return;
      const opened = openTerminal(parent.current);
      const { terminal } = opened;
      const socket = openSocket(
        execPath({ namespace, pod: name, container, command: SHELL, tty: true }),
        EXEC_PROTOCOLS,
      );
      const session = new ExecSession(socket, {
        onOpen: () => {
          setStatus('connected');
          session.resize(terminal.cols, terminal.rows);
          terminal.focus();
        },
        onOutput: (bytes) => terminal.write(bytes),
        onEnd: (message, exitCode) => {
          if (isShown)
            setStatus(
              `ended${exitCode === undefined ? '' : ` with exit code ${exitCode}`}${message === '' ? '' : `: ${message}`}`,
            );
        },
      });
      terminal.onData((text) => void session.write(text));
      terminal.onResize(({ cols, rows }) => session.resize(cols, rows));
      close = () => {
        session.close();
        opened.close();
      };
    }, showFailure);
    return () => {
      isShown = false;
      close();
    };
  }, [namespace, name, container, attempt, verdict.allowed]);
  if (!verdict.allowed) return <p>{verdict.reason}</p>;
  return (
    <>
      <div class="row">
        <label>
          Container{' '}
          <select value={container} onChange={({ currentTarget }) => setContainer(currentTarget.value)}>
            {containers.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <button type="button" onClick={() => setAttempt(attempt + 1)}>
          Connect again
        </button>
        <span class="muted" aria-live="polite">
          {status}
        </span>
      </div>
      <div ref={parent} class="terminal" />
    </>
  );
}
