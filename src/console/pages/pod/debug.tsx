/** Adds a debug container and opens a terminal on it. */
import { useState } from 'preact/hooks';
import type { Pod } from '../../../api/generated/core/v1.ts';
import { questionOf } from '../../data/api/access.ts';
import { PODS } from '../../data/api/resources.ts';
import { kubectl } from '../../data/kubectl.ts';
import { addDebugContainer, containerState, validateDebug } from '../../data/pods/debug.ts';
import { attachPath } from '../../data/pods/exec.ts';
import { useCommand } from '../../shell/command-line.tsx';
import { api, random } from '../../ui/context.ts';
import { useAccess } from '../../ui/hooks.ts';
import { Action } from '../../ui/parts.tsx';
import { StreamTerminal } from '../../ui/stream-terminal.tsx';

const LETTERS = 'bcdfghjklmnpqrstvwxz2456789';
const suffix = (): string => [...random.bytes(5)].map((byte) => LETTERS[byte % LETTERS.length]).join('');

export function Debug({ pod }: { readonly pod: Pod }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const own = (pod.spec?.containers ?? []).map((each) => each.name ?? '');
  const [image, setImage] = useState('');
  const [command, setCommand] = useState('');
  const [target, setTarget] = useState(own[0] ?? '');
  const [container, setContainer] = useState('');
  const existing = (pod.spec?.ephemeralContainers ?? []).map((each) => each.name ?? '');
  const attach = useAccess(questionOf('create', PODS, namespace, { name, subresource: 'attach' }));
  const request = { image, command, target };
  const problem = validateDebug(request);
  const disabled = attach.allowed ? problem : attach.reason;
  useCommand(kubectl('debug', '-it', '-n', namespace, name, `--image=${image || 'IMAGE'}`, `--target=${target}`));
  return (
    <>
      <p class="muted">
        A debug container shares the network and, if you choose one, the processes of a container. It stays in the pod
        until the pod is deleted.
      </p>
      <form class="form" onSubmit={(event) => event.preventDefault()}>
        <label>
          Image
          <input
            name="image"
            placeholder="registry.example/tools:1.0"
            value={image}
            onInput={({ currentTarget }) => setImage(currentTarget.value.trim())}
          />
        </label>
        <label>
          Command (empty: that of the image)
          <input
            name="command"
            placeholder="sh"
            value={command}
            onInput={({ currentTarget }) => setCommand(currentTarget.value)}
          />
        </label>
        <label>
          Show the processes of
          <select name="target" value={target} onChange={({ currentTarget }) => setTarget(currentTarget.value)}>
            <option value="">no container</option>
            {own.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <Action
          label="Add a debug container"
          question={questionOf('patch', PODS, namespace, { name, subresource: 'ephemeralcontainers' })}
          {...(disabled === undefined ? {} : { disabled })}
          run={async () => setContainer(await addDebugContainer(api, pod, request, suffix))}
        />
      </form>
      {existing.length === 0 ? null : (
        <label>
          Open{' '}
          <select value={container} onChange={({ currentTarget }) => setContainer(currentTarget.value)}>
            <option value="">choose a debug container</option>
            {existing.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
      )}
      {container === '' || !attach.allowed ? null : <Opened pod={pod} container={container} />}
    </>
  );
}

function Opened({ pod, container }: { readonly pod: Pod; readonly container: string }) {
  const { namespace = '', name = '' } = pod.metadata ?? {};
  const { state, reason } = containerState(pod, container);
  if (state === 'starting')
    return (
      <p aria-live="polite">
        {container} is starting{reason === '' ? '' : `: ${reason}`}.
      </p>
    );
  if (state === 'ended')
    return (
      <p aria-live="polite">
        {container}: {reason}
      </p>
    );
  return (
    <StreamTerminal key={container} path={attachPath(namespace, name, container)}>
      <span>{container}. Press Enter for a prompt.</span>
    </StreamTerminal>
  );
}
