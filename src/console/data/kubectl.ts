/** Builds the kubectl command that is equivalent to a view or an action. */
import type { ResourceType } from '../../api/meta/object.ts';

const PLAIN = /^[\w@%+=:,./-]+$/;

/** Quotes an argument for a POSIX shell. Names come from the API and may contain anything. */
export function shellQuote(argument: string): string {
  if (argument !== '' && PLAIN.test(argument)) return argument;
  return `'${argument.replaceAll("'", "'\\''")}'`;
}

export function kubectl(...args: readonly (string | undefined)[]): string {
  return ['kubectl', ...args.filter((each) => each !== undefined).map(shellQuote)].join(' ');
}

/** `pods`, or `deployments.apps` for kinds outside the core group. */
export const resourceArgument = ({ group, plural }: ResourceType): string =>
  group === '' ? plural : `${plural}.${group}`;

export interface ListView {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export function getCommand(type: ResourceType, view: ListView = {}): string {
  const { namespace, labelSelector, fieldSelector } = view;
  const scope = !type.namespaced ? [] : namespace === undefined || namespace === '' ? ['-A'] : ['-n', namespace];
  return kubectl(
    'get',
    resourceArgument(type),
    ...scope,
    ...(labelSelector === undefined || labelSelector === '' ? [] : ['-l', labelSelector]),
    ...(fieldSelector === undefined || fieldSelector === '' ? [] : ['--field-selector', fieldSelector]),
  );
}

export function describeCommand(type: ResourceType, name: string, namespace?: string): string {
  return kubectl('describe', resourceArgument(type), name, ...inNamespace(type, namespace));
}

export function logsCommand(namespace: string, pod: string, container: string, follow: boolean): string {
  return kubectl('logs', '-n', namespace, pod, '-c', container, follow ? '-f' : undefined);
}

export function execCommand(namespace: string, pod: string, container: string, command: readonly string[]): string {
  return kubectl('exec', '-it', '-n', namespace, pod, '-c', container, '--', ...command);
}

const inNamespace = (type: ResourceType, namespace: string | undefined): string[] =>
  type.namespaced && namespace !== undefined ? ['-n', namespace] : [];
