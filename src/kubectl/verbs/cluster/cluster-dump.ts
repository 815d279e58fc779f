/** `cluster-info dump`: objects and logs of namespaces. Source: k8s.io/kubectl/pkg/cmd/clusterinfo. */
import { messageOf } from '../../../base/errors.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, listAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { objectPrinter } from '../../printing.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';

/** Resources that are written for each namespace, and the names of their files. */
const RESOURCES: readonly (readonly [resource: string, file: string])[] = [
  ['events', 'events'],
  ['replicationcontrollers', 'replication-controllers'],
  ['services', 'services'],
  ['daemonsets.apps', 'daemonsets'],
  ['deployments.apps', 'deployments'],
  ['replicasets.apps', 'replicasets'],
  ['pods', 'pods'],
];

const EXTENSIONS: Readonly<Record<string, string>> = { json: '.json', yaml: '.yaml' };

type Write = (parts: readonly string[], content: string | Uint8Array) => Promise<void>;

/** Replaces characters of a name from the server, so that the name is a single path component. */
const safeName = (name: string): string => name.replaceAll('/', '_').replace(/^\.{0,2}$/, '_');

export const runDump = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, io, system } = context;
    const directory = flags.text('output-directory');
    const isDirectory = directory !== '' && directory !== '-';
    const format = flags.text('output');
    const printer = await objectPrinter(context);
    if (printer === undefined) throw new ClientError('-o wide is not supported by cluster-info dump; use json or yaml');
    const begun = new Set<string>();
    const write: Write = async (parts, content) => {
      if (!isDirectory) return io.out(content);
      const path = [directory, ...parts.map(safeName)].join('/');
      await system.appendFile(path, content, { truncate: !begun.has(path) });
      begun.add(path);
    };
    const show = async (parts: readonly string[], list: AnyObject): Promise<void> =>
      write(parts.with(-1, `${parts.at(-1)}${EXTENSIONS[format] ?? '.txt'}`), printer(list));

    await show(['nodes'], await listOf(session, 'nodes', undefined));
    for (const namespace of await namespacesOf(session)) {
      let pods: AnyObject = {};
      for (const [resource, file] of RESOURCES) {
        pods = await listOf(session, resource, namespace);
        await show([namespace, file], pods);
      }
      for (const pod of pods.items ?? []) await showLogs(session, namespace, pod, write);
    }
    if (isDirectory) io.out(`Cluster info dumped to ${directory}\n`);
    return 0;
  });

async function namespacesOf(session: Session): Promise<readonly string[]> {
  const { flags } = session.context;
  if (flags.bool('all-namespaces'))
    return ((await listOf(session, 'namespaces', undefined)).items ?? []).map((each) => each.metadata?.name ?? '');
  const given = flags.list('namespaces');
  return given.length > 0 ? given : ['kube-system', session.namespace];
}

async function listOf(session: Session, name: string, namespace: string | undefined): Promise<AnyObject> {
  const resource = await session.resource(name);
  return {
    kind: `${resource.kind}List`,
    apiVersion: resource.group === '' ? resource.version : `${resource.group}/${resource.version}`,
    items: await session.list(resource, namespace),
  };
}

async function showLogs(session: Session, namespace: string, pod: AnyObject, write: Write): Promise<void> {
  const pods = await session.resource('pods');
  const name = pod.metadata?.name ?? '';
  const file = [namespace, name, 'logs.txt'];
  for (const each of ['initContainers', 'containers'].flatMap((field) => listAt(pod, 'spec', field))) {
    const container = textAt(each, 'name');
    const title = `logs for container ${container} of pod ${namespace}/${name} ====\n`;
    await write(file, `==== START ${title}`);
    try {
      const body = await session.stream(`${pathOf(pods, namespace, name)}/log`, { container }, 'text/plain');
      for await (const chunk of body) await write(file, chunk);
    } catch (error) {
      await write(file, `Request log error: ${messageOf(error)}\n`);
    }
    await write(file, `==== END ${title}`);
  }
}
