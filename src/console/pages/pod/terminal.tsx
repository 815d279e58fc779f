import { useState } from 'preact/hooks';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { questionOf } from '../../data/api/access.ts';
import { PODS } from '../../data/api/resources.ts';
import { execCommand } from '../../data/kubectl.ts';
import { containerNames } from '../../data/pods/debug.ts';
import { execPath } from '../../data/pods/exec.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { useAccess } from '../../ui/hooks.ts';
import { StreamTerminal } from '../../ui/stream-terminal.tsx';

const SHELL = ['sh', '-c', 'command -v bash >/dev/null && exec bash || exec sh'];

/** Terminal in a container. */
export function TerminalView({ pod }: { readonly pod: Pod }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const containers = containerNames(pod);
  const [container, setContainer] = useState(containers[0] ?? '');
  const decision = useAccess(questionOf('create', PODS, namespace, { name, subresource: 'exec' }));
  useCommand(execCommand(namespace, name, container, ['sh']));
  if (!decision.allowed) return <p>{decision.reason}</p>;
  return (
    <StreamTerminal path={execPath({ namespace, pod: name, container, command: SHELL, tty: true })}>
      <ContainerChoice containers={containers} value={container} onChange={setContainer} />
    </StreamTerminal>
  );
}

export interface ContainerChoiceProps {
  readonly containers: readonly string[];
  readonly value: string;
  readonly onChange: (container: string) => void;
}

export const ContainerChoice = ({ containers, value, onChange }: ContainerChoiceProps) => (
  <label>
    Container{' '}
    <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
      {containers.map((each) => (
        <option key={each}>{each}</option>
      ))}
    </select>
  </label>
);
