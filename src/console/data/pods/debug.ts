/** Debug containers: ephemeral containers that are added to a running pod. Source: k8s.io/kubectl/pkg/cmd/debug. */
import type { ContainerStatus, Pod } from '../../../api/generated/core/v1.ts';
import { objectPath, query } from '../../../client/resource-path.ts';
import { type Api, STRATEGIC_PATCH } from '../api/api.ts';
import { FIELD_MANAGER } from '../api/apply.ts';
import { PODS } from '../api/resources.ts';
import { isImageName } from '../workloads/form.ts';

export interface DebugRequest {
  readonly image: string;
  /** Words of the command; empty for the default command of the image. */
  readonly command: string;
  /** Container whose processes the debug container can see; '' for none. */
  readonly target: string;
}

/** Error message for the user; undefined if the request is valid. */
export function validateDebug({ image }: DebugRequest): string | undefined {
  return isImageName(image) ? undefined : 'Image: use a name such as registry.example/tools:1.0.';
}

export const containerNames = ({ spec }: Pod): readonly string[] =>
  [...(spec?.containers ?? []), ...(spec?.initContainers ?? []), ...(spec?.ephemeralContainers ?? [])].map(
    ({ name = '' }) => name,
  );

/** Adds a debug container with a terminal. Resolves with the name of the container. */
export async function addDebugContainer(
  api: Api,
  pod: Pod,
  request: DebugRequest,
  randomSuffix: () => string,
): Promise<string> {
  const problem = validateDebug(request);
  if (problem !== undefined) throw new Error(problem);
  const { image, target } = request;
  const taken = new Set(containerNames(pod));
  let name: string;
  do name = `debugger-${randomSuffix()}`;
  while (taken.has(name));
  const words = request.command.split(/\s+/).filter(Boolean);
  const container = {
    name,
    image,
    stdin: true,
    tty: true,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'File',
    ...(words.length === 0 ? {} : { command: words }),
    ...(target === '' ? {} : { targetContainerName: target }),
  };
  const { name: podName = '', namespace } = pod.metadata ?? {};
  const path = objectPath(PODS, podName, namespace, 'ephemeralcontainers') + query({ fieldManager: FIELD_MANAGER });
  await api.json(path, {
    method: 'PATCH',
    contentType: STRATEGIC_PATCH,
    body: { spec: { ephemeralContainers: [container] } },
  });
  return name;
}

export type DebugState = 'starting' | 'running' | 'ended';

/** State of a container by name. If it does not run, the reason is included as text. */
export function containerState(pod: Pod, name: string): { readonly state: DebugState; readonly reason: string } {
  const { status } = pod;
  const found: ContainerStatus | undefined = [
    ...(status?.ephemeralContainerStatuses ?? []),
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
  ].find((each) => each.name === name);
  const { running, terminated, waiting } = found?.state ?? {};
  if (running !== undefined) return { state: 'running', reason: '' };
  if (terminated !== undefined)
    return {
      state: 'ended',
      reason: `it ended with exit code ${terminated.exitCode ?? 0}. Choose an image with a shell, or a command.`,
    };
  const { reason = '', message = '' } = waiting ?? {};
  return { state: 'starting', reason: [reason, message].filter(Boolean).join(': ') };
}
