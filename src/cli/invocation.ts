/** Determines the command of an invocation and the bundle that contains it. */
import { basename } from 'node:path';
import type { LINK_NAMES } from '../base/command-line/command-links.ts';

export interface Invocation {
  /** Arguments without the executable. */
  readonly argv: readonly string[];
  readonly argv0: string;
}

/**
 * Commands by the name of the link that started the executable. `hyperkube` takes one of the other names as its first
 * argument.
 */
const LINKED: Readonly<Record<Exclude<(typeof LINK_NAMES)[number], 'hyperkube'>, string>> = {
  'master-restart': 'master-restart',
  'master-logs': 'master-logs',
  etcd: 'etcd',
  'kube-apiserver': 'api',
  'kube-controller-manager': 'controllers',
  'kube-scheduler': 'controllers',
  'kube-proxy': 'proxy',
  kubelet: 'run',
  'openshift-node': 'run',
  kubectl: 'kubectl',
};

type LinkName = keyof typeof LINKED;

export interface Link {
  readonly name: LinkName;
  readonly command: string;
  readonly argv: readonly string[];
}

/**
 * The name of the link that started the executable or that was the first argument of `hyperkube`, and the remaining
 * arguments.
 */
export function linkOf({ argv, argv0 }: Invocation): Link | undefined {
  const started = basename(argv0);
  const hyperkube = started === 'hyperkube';
  const name = hyperkube ? (argv[0] ?? '') : started;
  return isLinkName(name) ? { name, command: LINKED[name], argv: hyperkube ? argv.slice(1) : argv } : undefined;
}

const isLinkName = (name: string): name is LinkName => Object.hasOwn(LINKED, name);

/**
 * Commands with a separate bundle: long-running commands, because V8 keeps the source of a bundle in memory, and the
 * built-in client and completion, which must start fast. Each has a file of its name in `commands`.
 */
export const OWN_BUNDLES: readonly string[] = ['run', 'etcd', 'api', 'controllers', 'kubectl', 'complete'];

/** Name of the bundle with the command: the name of the command, or `others`. */
export function bundleOf(invocation: Invocation): string {
  const { argv } = invocation;
  const [first = ''] = argv;
  const command = linkOf(invocation)?.command ?? (isClientCall(argv) ? 'kubectl' : first);
  if (command === '__complete') return 'complete';
  return OWN_BUNDLES.includes(command) ? command : 'others';
}

/**
 * Verbs of the built-in client that may be used without `kubectl` before them. A test compares them with the table of
 * verbs.
 */
export const CLIENT_VERBS: readonly string[] = [
  ...['get', 'describe', 'create', 'apply', 'replace', 'patch', 'edit', 'delete', 'logs', 'exec', 'attach', 'cp'],
  ...['port-forward', 'run', 'expose', 'scale', 'rollout', 'wait', 'label', 'annotate', 'cordon', 'uncordon', 'drain'],
  ...['taint', 'top', 'events', 'explain', 'api-resources', 'api-versions', 'cluster-info', 'auth'],
  ...['set', 'autoscale', 'certificate', 'diff', 'kustomize', 'debug'],
];

const CLIENT_CONFIG_VERBS: readonly string[] = [
  'view',
  'current-context',
  'get-contexts',
  'use-context',
  'set-context',
  ...['get-clusters', 'get-users', 'set-cluster', 'set-credentials', 'set', 'unset', 'use'],
  ...['delete-cluster', 'delete-context', 'delete-user', 'rename-context'],
];

/** Flags with a value that may precede a verb of the built-in client, as in kubectl. */
const LEADING_FLAGS: readonly string[] = [
  ...['-n', '--namespace', '--kubeconfig', '--context', '--cluster', '--user', '-s', '--server', '--as'],
];

/** Whether the arguments call the built-in client, including its help. */
export const isClientCall = (argv: readonly string[]): boolean =>
  isClientVerb(withoutLeadingFlags(argv)) ||
  argv[0] === 'kubectl' ||
  (argv[0] === 'help' && isClientVerb(argv.slice(1)));

/** The arguments after flags that may precede a verb of the built-in client. */
export function withoutLeadingFlags(argv: readonly string[]): readonly string[] {
  for (let at = 0; ; ) {
    const [name = '', value] = (argv[at] ?? '').split('=', 2);
    if (!LEADING_FLAGS.includes(name)) return argv.slice(at);
    at += value === undefined ? 2 : 1;
  }
}

/**
 * Whether the arguments begin with a verb of the built-in client. `run` starts the host process unless an image is
 * given. `config` has verbs of the client in addition to those for the bootstrap file.
 */
export function isClientVerb(argv: readonly string[]): boolean {
  const [first = '', second = ''] = argv;
  if (first === 'config') return CLIENT_CONFIG_VERBS.includes(second);
  if (first === 'run') return argv.some((each) => each === '--image' || each.startsWith('--image='));
  return CLIENT_VERBS.includes(first);
}
