/** `debug`: an ephemeral container, a copy of a pod, or a pod on a node. Source: k8s.io/kubectl/pkg/cmd/debug. */
import { ClientError } from '../core/errors.ts';
import { type AnyObject, at, listAt, textAt } from '../core/objects.ts';
import { pathOf } from '../core/resources.ts';
import { parseGoDuration } from '../core/times.ts';
import type { VerbContext } from '../port.ts';
import { withSession } from '../run.ts';
import type { Session } from '../session.ts';
import { currentObject, oneTarget } from '../targets.ts';
import { pairs } from './create-content.ts';
import { type Fields, profiled } from './debug-profiles.ts';
import { connectTerminal } from './exec.ts';

const POLL_MS = 200;
const START_TIMEOUT = '1m0s';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, dashAt } = context;
    const names = dashAt === undefined ? args : args.slice(0, dashAt);
    if (names.length === 0) throw new ClientError('NAME or TYPE/NAME is required for debug');
    if (flags.text('image') === '' && flags.text('copy-to') === '')
      throw new ClientError('you must specify --image, --copy-to or --set-image');
    if (flags.bool('tty') && !flags.bool('stdin'))
      throw new ClientError('-i/--stdin is required for containers with -t/--tty=true');
    if (flags.text('target') !== '' && flags.text('copy-to') !== '')
      throw new ClientError('--target is incompatible with --copy-to. Use --share-processes instead.');
    for (const name of names) {
      const target = await oneTarget(session, [name], 'pods');
      const object = await currentObject(session, target);
      const { pod, container } =
        object.kind === 'Node'
          ? await onNode(session, target.name)
          : object.kind !== 'Pod'
            ? unsupported(object)
            : flags.text('copy-to') === ''
              ? await beside(session, object)
              : await copied(session, object);
      const isAttached = flags.has('attach') ? flags.bool('attach') : flags.bool('stdin');
      if (isAttached) return attach(session, pod, container);
    }
    return 0;
  });

function unsupported(object: AnyObject): never {
  throw new ClientError(`${(object.kind ?? '').toLowerCase()} is not supported by debug; name a pod or node/NAME`);
}

interface Started {
  readonly pod: AnyObject;
  readonly container: string;
}

const suffix = (): string => {
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  return Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => letters[byte % letters.length]).join('');
};

function newContainer({ flags, args, dashAt }: VerbContext, name: string): Fields {
  const words = dashAt === undefined ? [] : args.slice(dashAt);
  const env = Object.entries(pairs(flags.all('env'), 'env')).map(([key, value]) => ({ name: key, value }));
  return {
    name,
    image: flags.text('image'),
    ...(env.length === 0 ? {} : { env }),
    ...(flags.text('image-pull-policy') === '' ? {} : { imagePullPolicy: flags.text('image-pull-policy') }),
    ...(flags.bool('stdin') ? { stdin: true } : {}),
    ...(flags.bool('tty') ? { tty: true } : {}),
    ...(words.length === 0 ? {} : { [flags.bool('arguments-only') ? 'args' : 'command']: [...words] }),
    terminationMessagePolicy: 'File',
  };
}

/** Name of the container of `-c`, or a new one, which is reported. */
function containerName({ flags, io }: VerbContext, taken: readonly string[]): string {
  if (flags.text('container') !== '') return flags.text('container');
  let name: string;
  do name = `debugger-${suffix()}`;
  while (taken.includes(name));
  if (!flags.bool('quiet')) io.out(`Defaulting debug container name to ${name}.\n`);
  return name;
}

const FIELDS = ['containers', 'initContainers', 'ephemeralContainers'];
const containerNames = (pod: AnyObject): string[] =>
  FIELDS.flatMap((field) => listAt(pod, 'spec', field).map((each) => textAt(each, 'name')));

async function beside(session: Session, pod: AnyObject): Promise<Started> {
  const { context } = session;
  const { flags } = context;
  const target = flags.text('target');
  const container = containerName(context, containerNames(pod));
  if (target !== '' && !flags.bool('quiet'))
    context.io.out(
      `Targeting container "${target}". If you don't see processes from this container it may be because the container runtime doesn't support this feature.\n`,
    );
  const added = {
    ...profiled(flags.text('profile'), 'ephemeral', {}, newContainer(context, container)).container,
    ...(target === '' ? {} : { targetContainerName: target }),
  };
  const pods = await session.resource('pods');
  const { name, namespace } = pod.metadata ?? {};
  const after = await session.send('PATCH', pathOf(pods, namespace, name, 'ephemeralcontainers'), {
    body: { spec: { ephemeralContainers: [added] } },
    contentType: 'application/strategic-merge-patch+json',
  });
  return { pod: after, container };
}

async function onNode(session: Session, node: string): Promise<Started> {
  const { context } = session;
  const { flags, io } = context;
  if (flags.text('image') === '') throw new ClientError('you must specify --image for node/NAME');
  const container = flags.text('container') || 'debugger';
  const name = `node-debugger-${node}-${suffix()}`;
  if (!flags.bool('quiet')) io.out(`Creating debugging pod ${name} with container ${container} on node ${node}.\n`);
  const made = profiled(
    flags.text('profile'),
    'node',
    { nodeName: node, restartPolicy: 'Never', tolerations: [{ operator: 'Exists' }] },
    newContainer(context, container),
  );
  return {
    container,
    pod: await createPod(
      session,
      { name, labels: { 'app.kubernetes.io/managed-by': 'kubectl-debug' } },
      { ...made.spec, containers: [made.container] },
    ),
  };
}

async function createPod(session: Session, metadata: object, spec: object): Promise<AnyObject> {
  const pods = await session.resource('pods');
  return session.send('POST', pathOf(pods, session.namespace), {
    query: { fieldManager: 'kubectl-debug' },
    body: { apiVersion: 'v1', kind: 'Pod', metadata, spec },
  });
}

async function copied(session: Session, pod: AnyObject): Promise<Started> {
  const { context } = session;
  const { flags } = context;
  const { nodeName, ephemeralContainers: _, initContainers, ...rest } = structuredClone((pod['spec'] ?? {}) as Fields);
  const images = pairs(flags.list('set-image'), 'set-image');
  const containers = (rest['containers'] as Fields[]).map((each) => {
    const { livenessProbe, readinessProbe, startupProbe, ...plain } = each;
    const image = images[String(each['name'])] ?? images['*'];
    return {
      ...plain,
      ...(flags.bool('keep-liveness') && livenessProbe !== undefined ? { livenessProbe } : {}),
      ...(flags.bool('keep-readiness') && readinessProbe !== undefined ? { readinessProbe } : {}),
      ...(flags.bool('keep-startup') && startupProbe !== undefined ? { startupProbe } : {}),
      ...(image === undefined ? {} : { image }),
    } as Fields;
  });
  const spec: Fields = {
    ...rest,
    ...(flags.bool('keep-init-containers') && initContainers !== undefined ? { initContainers } : {}),
    ...(flags.bool('same-node') && nodeName !== undefined ? { nodeName } : {}),
    ...(flags.bool('share-processes') ? { shareProcessNamespace: true } : {}),
  };
  const wanted = flags.text('container');
  const existing = containers.find((each) => each['name'] === wanted);
  const isNew = existing === undefined && flags.text('image') !== '';
  if (existing === undefined && wanted !== '' && !isNew)
    throw new ClientError(
      `you must specify an existing container or a new image when specifying a container; ${wanted} is none`,
    );
  const container = isNew
    ? containerName(context, containerNames(pod))
    : wanted || String(containers[0]?.['name'] ?? '');
  const words = context.dashAt === undefined ? [] : context.args.slice(context.dashAt);
  if (isNew) containers.push(newContainer(context, container));
  else if (existing !== undefined) {
    if (words.length > 0) Object.assign(existing, { command: [...words], args: undefined });
    if (flags.text('image') !== '') existing['image'] = flags.text('image');
    if (flags.bool('stdin')) existing['stdin'] = true;
    if (flags.bool('tty')) existing['tty'] = true;
  }
  const made = profiled(
    flags.text('profile'),
    'copy',
    spec,
    containers.find((each) => each['name'] === container) ?? {},
  );
  const all = containers.map((each) => (each['name'] === container ? made.container : each));
  const metadata = {
    name: flags.text('copy-to'),
    ...(flags.bool('keep-labels') ? { labels: pod.metadata?.labels } : {}),
    ...(flags.bool('keep-annotations') ? { annotations: pod.metadata?.annotations } : {}),
  };
  const copy = await createPod(session, metadata, { ...made.spec, containers: all });
  if (flags.bool('replace')) {
    const pods = await session.resource('pods');
    await session.send('DELETE', pathOf(pods, pod.metadata?.namespace, pod.metadata?.name));
  }
  return { pod: copy, container };
}

/** Waits until the container runs and connects; prints the log of one that has ended. */
async function attach(session: Session, pod: AnyObject, container: string): Promise<number> {
  const { flags, io, system, signal } = session.context;
  const pods = await session.resource('pods');
  const { name, namespace } = pod.metadata ?? {};
  const deadline = system.monotonicMs() + parseGoDuration(START_TIMEOUT);
  for (;;) {
    const current = await session.get(pathOf(pods, namespace, name));
    const status = ['containerStatuses', 'ephemeralContainerStatuses']
      .flatMap((field) => listAt(current, 'status', field))
      .find((each) => textAt(each, 'name') === container);
    if (at(status, 'state', 'terminated') !== undefined) {
      const body = await session.stream(`${pathOf(pods, namespace, name)}/log`, { container }, 'text/plain');
      for await (const chunk of body) io.out(chunk);
      return 0;
    }
    if (at(status, 'state', 'running') !== undefined) {
      if (flags.bool('stdin') && io.isInputTerminal && !flags.bool('quiet'))
        io.err("If you don't see a command prompt, try pressing enter.\n");
      return connectTerminal(session, current, 'attach', {
        container,
        stdin: flags.bool('stdin'),
        tty: flags.bool('tty'),
      });
    }
    if (system.monotonicMs() > deadline) {
      const reason = textAt(status, 'state', 'waiting', 'message') || textAt(status, 'state', 'waiting', 'reason');
      throw new ClientError(`timed out waiting for the container ${container}${reason === '' ? '' : `: ${reason}`}`);
    }
    await system.sleep(POLL_MS, signal);
  }
}
