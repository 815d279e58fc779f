/** Determines the command of an invocation and the bundle that contains it. */
import { basename } from 'node:path';
import type { LINK_NAMES } from '../base/command-links.ts';

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
};

type LinkName = keyof typeof LINKED;

export interface Link {
  readonly name: LinkName;
  readonly command: string;
  readonly argv: readonly string[];
}

/** The link that started the executable or that was given to `hyperkube`, and the remaining arguments. */
export function linkOf({ argv, argv0 }: Invocation): Link | undefined {
  const started = basename(argv0);
  const hyperkube = started === 'hyperkube';
  const name = hyperkube ? (argv[0] ?? '') : started;
  return isLinkName(name) ? { name, command: LINKED[name], argv: hyperkube ? argv.slice(1) : argv } : undefined;
}

const isLinkName = (name: string): name is LinkName => Object.hasOwn(LINKED, name);

/**
 * Long-running commands. Each has a file of its name in `commands` and a bundle of its own, because V8 keeps the source
 * of a bundle in memory.
 */
export const OWN_BUNDLES: readonly string[] = ['run', 'etcd', 'api', 'controllers'];

/** Name of the bundle with the command: the name of the command, or `others`. */
export function bundleOf(invocation: Invocation): string {
  const command = linkOf(invocation)?.command ?? invocation.argv[0] ?? '';
  return OWN_BUNDLES.includes(command) ? command : 'others';
}
