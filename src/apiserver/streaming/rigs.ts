/**
 * Console and power of rigs, served by the kubelet of the rig's node. Administrators use `rigs/console` and
 * `rigs/power`; the namespace whose claim has the rig uses `rigclaims/console` and `rigclaims/power`.
 */
import type { Duplex } from 'node:stream';
import { ApiError, errors } from '../../api/meta/status.ts';
import {
  POWER_ACTIONS,
  type PowerAction,
  type Rig,
  type RigClaim,
  type RigPowerAction,
} from '../../rigs/kinds/rig-types.ts';
import { rigClaims } from '../../rigs/kinds/rigclaims/index.ts';
import { rigs } from '../../rigs/kinds/rigs/index.ts';
import type { Exchange } from '../http/exchange.ts';
import { isTrue, type ResourceRequestInfo } from '../http/request-info.ts';
import type { ServerContext } from '../rest/context.ts';
import { backendRequest, textOf } from './forward.ts';
import { kubeletOf, type Target } from './targets.ts';

export type RigsContext = Pick<
  ServerContext,
  'backends' | 'cache' | 'certificates' | 'clock' | 'config' | 'destinations' | 'random'
>;

const MAX_ANSWER = 64 * 1024;
/** Limit for one step: the time limit of a command on the node, and of the commands that it waits for. */
const STEP_MS = 120_000;
/**
 * Interval of the check that a claim still has its rig. A console may stay open this long after the claim has lost it.
 */
const CHECK_MS = 1_000;

const claimOf = (context: RigsContext, { namespace, name }: ResourceRequestInfo): RigClaim | undefined =>
  context.cache.kind(rigClaims.storagePrefix).get(namespace, name)?.shared<RigClaim>() as RigClaim | undefined;

/** The named rig, or the rig of the named claim. Throws 'NotFound', and 'Conflict' for a claim without a rig. */
export function rigOf(context: RigsContext, info: ResourceRequestInfo): Rig {
  let { name } = info;
  if (info.plural === rigClaims.plural) {
    const claim = claimOf(context, info);
    if (claim === undefined) throw errors.notFound(rigClaims, name);
    const { phase = 'Queued', rig = '' } = claim.status ?? {};
    if (phase !== 'Granted')
      throw new ApiError('Conflict', `RigClaim "${name}" is ${phase}; wait until it is Granted, or create another one`);
    name = rig;
  }
  const rig = context.cache.kind(rigs.storagePrefix).get('', name)?.shared<Rig>() as Rig | undefined;
  if (rig === undefined) throw errors.notFound(rigs, name);
  return rig;
}

export function nodeOfRig({ metadata, spec, status }: Rig): string {
  const node = status?.node ?? spec?.node;
  if (node !== undefined) return node;
  throw new ApiError(
    'ServiceUnavailable',
    `rig "${metadata?.name ?? ''}": no node has all of its fixtures; plug them in`,
  );
}

/** Name of a fixture on the node, by its name in the rig. */
function fixtureOf({ metadata, spec }: Rig, name: string | undefined): string {
  const found = spec?.fixtures?.find((each) => each.name === name)?.fixture;
  if (found === undefined) throw errors.badRequest(`rig "${metadata?.name ?? ''}" has no fixture "${name ?? ''}"`);
  return found;
}

/** Kubelet target of the console of a rig. */
export function rigTarget(context: RigsContext, info: ResourceRequestInfo): Target {
  const rig = rigOf(context, info);
  const { name = '' } = rig.metadata ?? {};
  const { console } = rig.spec ?? {};
  if (console === undefined) throw errors.badRequest(`rig "${name}" has no console; set spec.console`);
  const query = new URLSearchParams({
    fixture: fixtureOf(rig, console.fixture),
    baud: String(console.baudRate ?? 115_200),
  });
  const flags = { stdin: 'input', stdout: 'output', tty: 'tty' };
  for (const [option, parameter] of Object.entries(flags))
    if (isTrue(info.query.get(option))) query.set(parameter, '1');
  return kubeletOf(context, nodeOfRig(rig), `/rigs/${encodeURIComponent(name)}/console?${query}`);
}

/** Closes the console of a claim when the claim loses its rig. */
export function endWithClaim(context: RigsContext, info: ResourceRequestInfo, socket: Duplex): void {
  if (info.plural !== rigClaims.plural) return;
  const uid = claimOf(context, info)?.metadata?.uid;
  const check = (): void => {
    if (socket.destroyed) return;
    const claim = claimOf(context, info);
    if (claim?.metadata?.uid === uid && claim?.status?.phase === 'Granted') context.clock.setTimer(CHECK_MS, check);
    else socket.destroy();
  };
  context.clock.setTimer(CHECK_MS, check);
}

/**
 * Handles `POST …/power?action=on|off|cycle`. The message of the returned Status is the output of the command.
 * A cycle that has begun is completed although the client disconnects or the deadline of its request passes, because
 * otherwise the board would stay off.
 */
export async function switchRig(context: RigsContext, exchange: Exchange, info: ResourceRequestInfo): Promise<void> {
  const action = POWER_ACTIONS.find((each) => each === info.query.get('action'));
  if (action === undefined) throw errors.badRequest(`action: must be one of ${POWER_ACTIONS.join(', ')}`);
  await context.cache.freshen();
  const rig = rigOf(context, info);
  const name = rig.metadata?.name ?? '';
  const outputs: string[] = [];
  const steps = stepsOf(rig, action);
  for (const step of steps) {
    const path = `/rigs/${encodeURIComponent(name)}/power?${step}`;
    const target = kubeletOf(context, nodeOfRig(rig), path);
    const limit = new AbortController();
    const timer = context.clock.setTimer(STEP_MS, () => limit.abort());
    try {
      const signal = steps.length > 1 ? limit.signal : AbortSignal.any([limit.signal, exchange.signal]);
      const answer = await context.backends.request(backendRequest(target, 'POST', {}, signal), undefined);
      const output = (await textOf(answer, MAX_ANSWER)).trim();
      const status = answer.statusCode ?? 502;
      if (status === 400 || status === 404) throw errors.badRequest(output);
      if (status === 429) throw new ApiError('TooManyRequests', output);
      if (status !== 200) throw new ApiError('InternalError', `rig "${name}": power ${action}: ${output}`);
      if (output !== '') outputs.push(output);
    } finally {
      timer.cancel();
    }
  }
  exchange.sendJson(200, {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    code: 200,
    message: outputs.join('\n'),
    details: { name, group: rigs.group, kind: rigs.plural },
  });
}

/** Queries of the kubelet path, in the order in which they are sent. */
function stepsOf(rig: Rig, action: PowerAction): URLSearchParams[] {
  const power = rig.spec?.power;
  const own = power?.[action];
  if (own !== undefined) return action === 'cycle' && own.fixture !== undefined ? cycle(own, own) : [step(own, action)];
  if (action === 'cycle' && power?.off !== undefined && power.on !== undefined) return cycle(power.off, power.on);
  throw errors.badRequest(`rig "${rig.metadata?.name ?? ''}" has no spec.power.${action}; set it`);

  function cycle(off: RigPowerAction, on: RigPowerAction): URLSearchParams[] {
    return [step(off, 'off'), new URLSearchParams({ rest: '1000' }), step(on, 'on')];
  }

  function step({ command, fixture, channel = 1 }: RigPowerAction, to: PowerAction): URLSearchParams {
    return command === undefined
      ? new URLSearchParams({ relay: fixtureOf(rig, fixture), channel: String(channel), to })
      : new URLSearchParams({ command });
  }
}
