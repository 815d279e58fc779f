/** Which command an invocation names, and the bundle of the executable that contains it. */
import { basename } from 'node:path';
import type { LINK_NAMES } from '../base/link-names.ts';

export interface Invocation {
  /** Without the executable. */
  readonly argv: readonly string[];
  readonly argv0: string;
}

/** Names of links to the executable and their commands; `hyperkube` takes one of the others as its first argument. */
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
};

type LinkName = keyof typeof LINKED;

export interface Link {
  readonly name: LinkName;
  readonly command: string;
  readonly argv: readonly string[];
}

/** The link that started the executable, or that `hyperkube` names, and the arguments after it. */
export function linkOf({ argv, argv0 }: Invocation): Link | undefined {
  const started = basename(argv0);
  const hyperkube = started === 'hyperkube';
  const name = hyperkube ? (argv[0] ?? '') : started;
  return isLinkName(name) ? { name, command: LINKED[name], argv: hyperkube ? argv.slice(1) : argv } : undefined;
}

const isLinkName = (name: string): name is LinkName => Object.hasOwn(LINKED, name);

/**
 * Commands that run for as long as the host does; each is the file of its name in `commands`. V8 keeps the
 * source of a bundle in memory: these have bundles without the other commands.
 */
export const OWN_BUNDLES: readonly string[] = ['run', 'etcd', 'api', 'controllers'];

/** The name of the bundle that contains the command: that of the command or, for all others, `others`. */
export function bundleOf(invocation: Invocation): string {
  const command = linkOf(invocation)?.command ?? invocation.argv[0] ?? '';
  return OWN_BUNDLES.includes(command) ? command : 'others';
}
