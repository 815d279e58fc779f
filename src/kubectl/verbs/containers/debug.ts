/** `debug`: an ephemeral container, a copy of a pod, or a pod on a node. Source: k8s.io/kubectl/pkg/cmd/debug. */
import { compileRegexp } from '../../../base/regexp/index.ts';
import { parseGoDuration } from '../../core/durations.ts';
import { ClientError } from '../../core/errors.ts';
import { type AnyObject, fieldAt, listAt, textAt } from '../../core/objects.ts';
import { pathOf } from '../../core/resources.ts';
import type { VerbContext } from '../../port.ts';
import { withSession } from '../../run.ts';
import type { Session } from '../../session.ts';
import { currentObject, oneTarget } from '../../targets.ts';
import { pairs } from '../create/create-content.ts';
import {
  type CustomMerge,
  checkCustom,
  customContainerOf,
  customMerge,
  warnOfUser,
  withCustom,
} from './debug-custom.ts';
import {
  copiedPod,
  type DebugPod,
  type Fields,
  nodePod,
  type Profile,
  profiledContainer,
  profileOf,
} from './debug-profiles.ts';
import { connectTerminal } from './exec.ts';

const POLL_MS = 200;
const START_TIMEOUT = '1m0s';

export const run = (context: VerbContext): Promise<number> =>
  withSession(context, async (session) => {
    const { flags, args, dashAt } = context;
    const names = dashAt === undefined ? args : args.slice(0, dashAt);
    const profile = profileOf(context.flags.text('profile'));
    const custom = await customContainerOf(context);
    check(context, names, profile, custom);
    const merge = await customMerge(session, custom);
    let code = 0;
    for (const name of names) {
      const target = await oneTarget(session, [name], 'pods');
      const object = await currentObject(session, target);
      const { pod, container } = await started(session, object, merge, custom !== undefined);
      const isAttached = flags.has('attach') ? flags.bool('attach') : flags.bool('stdin');
      if (isAttached && container !== '') code = (await attach(session, pod, container)) || code;
    }
    return code;
  });

/** Starts the debug container of one object. A copy of a pod is changed only by a `--custom` container. */
function started(session: Session, object: AnyObject, merge: CustomMerge, isCustom: boolean): Promise<Started> {
  if (object.kind === 'Node') return onNode(session, object.metadata?.name ?? '', merge);
  if (object.kind !== 'Pod') return unsupported(object);
  if (session.context.flags.text('copy-to') === '') return addEphemeralContainer(session, object, merge);
  return copied(session, object, isCustom ? merge : undefined);
}

/** Checks the flags. Throws ClientError with kubectl's messages, in the order of kubectl's checks. */
function check(context: VerbContext, names: readonly string[], profile: Profile, custom: Fields | undefined): void {
  const { flags, io } = context;
  const [image, container] = [flags.text('image'), flags.text('container')];
  const images = setImages(context);
  const words = wordsOf(context);
  if (flags.has('attach') && flags.bool('attach') && image === '' && container === '')
    throw new ClientError('you must specify --container or create a new container using --image in order to attach.');
  if (flags.text('copy-to') !== '') {
    if (image === '' && Object.keys(images).length === 0 && words.length === 0)
      throw new ClientError('you must specify --image, --set-image or command arguments.');
    if (words.length > 0 && container === '' && image === '')
      throw new ClientError('you must specify an existing container or a new image when specifying args.');
  } else {
    for (const flag of ['replace', 'same-node'])
      if (flags.bool(flag)) throw new ClientError(`--${flag} may only be used with --copy-to.`);
    if (Object.keys(images).length > 0) throw new ClientError('--set-image may only be used with --copy-to.');
    if (image === '') throw new ClientError('you must specify --image when not using --copy-to.');
  }
  if (image !== '' && !isImageReference(image))
    throw new ClientError(`invalid image name ${JSON.stringify(image)}: invalid reference format`);
  if (names.length === 0) throw new ClientError('NAME or filename is required for debug');
  const policy = flags.text('image-pull-policy');
  if (!['', 'Always', 'IfNotPresent', 'Never'].includes(policy))
    throw new ClientError(`invalid image pull policy: ${policy}`);
  for (const [name, each] of Object.entries(images))
    if (!isImageReference(each))
      throw new ClientError(
        `invalid image name ${JSON.stringify(each)} for container ${JSON.stringify(name)}: invalid reference format`,
      );
  const target = flags.text('target');
  if (target !== '') {
    if (flags.text('copy-to') !== '')
      throw new ClientError('--target is incompatible with --copy-to. Use --share-processes instead.');
    if (!flags.bool('quiet'))
      io.out(
        `Targeting container "${target}". If you don't see processes from this container it may be because the container runtime doesn't support this feature.\n`,
      );
  }
  if (flags.bool('tty') && !flags.bool('stdin'))
    throw new ClientError('-i/--stdin is required for containers with -t/--tty=true');
  checkCustom(custom);
  if (profile === 'legacy')
    io.err(
      '--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other profile, for example "--profile=general".\n',
    );
}

const wordsOf = ({ args, dashAt }: VerbContext): readonly string[] => (dashAt === undefined ? [] : args.slice(dashAt));
const setImages = ({ flags }: VerbContext): Readonly<Record<string, string>> =>
  pairs(flags.list('set-image'), 'set-image');

const LABEL = '(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])';
const DOMAIN = `(?:${LABEL}(?:\\.${LABEL})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const PART = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const TAG = '\\w[\\w.-]{0,127}';
const DIGEST = '[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}';
/** Pattern of image references. Source: github.com/distribution/reference. */
const IMAGE_REFERENCE = `^(?:${DOMAIN}/)?${PART}(?:/${PART})*(?::${TAG})?(?:@${DIGEST})?$`;

const isImageReference = (text: string): boolean => compileRegexp(IMAGE_REFERENCE).test(text);

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

function environmentOf({ flags }: VerbContext): readonly Fields[] {
  return Object.entries(pairs(flags.all('env'), 'env')).map(([name, value]) => ({ name, value }));
}

function newContainer(context: VerbContext, name: string): Fields {
  const { flags } = context;
  const words = wordsOf(context);
  const env = environmentOf(context);
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

/** Name of the container: that of `-c`, or a generated name, which is printed. */
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

async function addEphemeralContainer(session: Session, pod: AnyObject, merge: CustomMerge): Promise<Started> {
  const { context } = session;
  const { flags } = context;
  const target = flags.text('target');
  const container = containerName(context, containerNames(pod));
  const added = {
    ...merge(profiledContainer(profileOf(flags.text('profile')), 'ephemeral', newContainer(context, container))),
    ...(target === '' ? {} : { targetContainerName: target }),
  };
  warnOfUser(context, pod['spec'], added);
  const pods = await session.resource('pods');
  const { name, namespace } = pod.metadata ?? {};
  const present = listAt(pod, 'spec', 'ephemeralContainers').map((each) => textAt(each, 'name'));
  // The server would merge the new container into the existing one without an error.
  if (present.includes(container))
    throw new ClientError(
      `The Pod "${name}" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "${container}" may not be changed\n`,
      { isPlain: true },
    );
  const order = [...present, container].map((each) => ({ name: each }));
  const after = await session.send('PATCH', pathOf(pods, namespace, name, 'ephemeralcontainers'), {
    body: { spec: { '$setElementOrder/ephemeralContainers': order, ephemeralContainers: [added] } },
    contentType: 'application/strategic-merge-patch+json',
  });
  return { pod: after, container };
}

async function onNode(session: Session, node: string, merge: CustomMerge): Promise<Started> {
  const { context } = session;
  const { flags, io } = context;
  const container = flags.text('container') || 'debugger';
  const name = `node-debugger-${node}-${suffix()}`;
  if (!flags.bool('quiet')) io.out(`Creating debugging pod ${name} with container ${container} on node ${node}.\n`);
  const pod = {
    metadata: { name, labels: { 'app.kubernetes.io/managed-by': 'kubectl-debug' } },
    spec: {
      nodeName: node,
      restartPolicy: 'Never',
      tolerations: [{ operator: 'Exists' }],
      containers: [newContainer(context, container)],
    },
  };
  const made = nodePod(profileOf(flags.text('profile')), pod, container);
  const spec = withCustom(made.spec, container, name, merge);
  return { container, pod: await createPod(session, session.namespace, { ...made, spec }) };
}

async function createPod(session: Session, namespace: string, { metadata, spec }: DebugPod): Promise<AnyObject> {
  const pods = await session.resource('pods');
  return session.send('POST', pathOf(pods, namespace), {
    query: { fieldManager: 'kubectl-debug' },
    body: { apiVersion: 'v1', kind: 'Pod', metadata, spec },
  });
}

async function copied(session: Session, pod: AnyObject, merge: CustomMerge | undefined): Promise<Started> {
  const { context } = session;
  const { flags } = context;
  const { nodeName, ephemeralContainers: _, ...rest } = structuredClone((pod['spec'] ?? {}) as Fields);
  const images = setImages(context);
  const containers = (rest['containers'] as Fields[]).map((each) => {
    const image = images[String(each['name'])] ?? images['*'];
    return image === undefined ? each : { ...each, image };
  });
  const spec: Fields = {
    ...rest,
    containers,
    ...(flags.bool('same-node') && nodeName !== undefined ? { nodeName } : {}),
    ...(flags.has('share-processes') ? { shareProcessNamespace: flags.bool('share-processes') } : {}),
  };
  const { labels, annotations, namespace = session.namespace } = pod.metadata ?? {};
  const copy: DebugPod = { metadata: { name: flags.text('copy-to'), labels, annotations }, spec };
  const { made, container } = withDebugContainer(context, pod, copy);
  const custom =
    merge === undefined || container === ''
      ? made.spec
      : withCustom(made.spec, container, flags.text('copy-to'), merge);
  const debugged = (custom['containers'] as Fields[]).find((each) => each['name'] === container);
  warnOfUser(context, custom, debugged);
  const created = await createPod(session, namespace, { ...made, spec: custom });
  if (flags.bool('replace')) {
    const pods = await session.resource('pods');
    await session.send('DELETE', pathOf(pods, namespace, pod.metadata?.name), {
      body: { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0 },
    });
  }
  return { pod: created, container };
}

/** The copy with a new or changed container. With `--set-image` alone, no container is added or selected. */
function withDebugContainer(
  context: VerbContext,
  pod: AnyObject,
  copy: DebugPod,
): { readonly made: DebugPod; readonly container: string } {
  const { flags } = context;
  const lists = ['containers', 'initContainers'] as const;
  const wanted = flags.text('container');
  const field = lists.find((each) => ((copy.spec[each] ?? []) as Fields[]).some(({ name }) => name === wanted));
  if (field === undefined && flags.text('image') === '') {
    if (Object.keys(setImages(context)).length > 0) return { made: copy, container: '' };
    throw new ClientError('you must specify image when creating new container');
  }
  const container = field === undefined ? containerName(context, containerNames(pod)) : wanted;
  const { imagePullPolicy, env, command, args, image, stdin, tty, ...others } = newContainer(context, container);
  const given = { imagePullPolicy, env, image: image === '' ? undefined : image, command, args };
  const change = (before: Fields): Fields => {
    const after: Fields = { ...before, ...defined(given), stdin: stdin ?? false, tty: tty ?? false };
    // A new command replaces both command and arguments.
    if (command !== undefined) delete after['args'];
    return after;
  };
  const list = (copy.spec[field ?? 'containers'] ?? []) as Fields[];
  const changed =
    field === undefined
      ? [...list, change(others)]
      : list.map((each) => (each['name'] === container ? change(each) : each));
  const spec = { ...copy.spec, [field ?? 'containers']: changed };
  const made = copiedPod(profileOf(flags.text('profile')), { metadata: copy.metadata, spec }, container, {
    labels: flags.bool('keep-labels'),
    annotations: flags.bool('keep-annotations'),
    liveness: flags.bool('keep-liveness'),
    readiness: flags.bool('keep-readiness'),
    startup: flags.bool('keep-startup'),
    initContainers: flags.bool('keep-init-containers'),
  });
  return { made, container };
}

const defined = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));

/** Waits until the container runs and attaches to it. If the container has ended, prints its log. */
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
    if (fieldAt(status, 'state', 'terminated') !== undefined) {
      const body = await session.stream(`${pathOf(pods, namespace, name)}/log`, { container }, 'text/plain');
      for await (const chunk of body) io.out(chunk);
      return 0;
    }
    if (fieldAt(status, 'state', 'running') !== undefined) {
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
