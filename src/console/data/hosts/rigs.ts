/** Requests for rigs and claims. Administrators use the rig itself; other users use the claim that holds the rig. */
import { collectionPath, objectPath, query } from '../../../client/resource-path.ts';
import type { Api } from '../api/api.ts';
import { type AnyObject, fieldAt, RIG_CLAIMS, RIGS, textAt } from '../api/resources.ts';

export const POWER_ACTIONS = ['on', 'off', 'cycle'] as const;
export type PowerAction = (typeof POWER_ACTIONS)[number];

/** Object that actions on a rig address: the rig, or a claim in its namespace. */
export interface RigTarget {
  readonly kind: 'rigs' | 'rigclaims';
  readonly name: string;
  /** Namespace of the claim; '' for a rig. */
  readonly namespace: string;
}

const typeOf = ({ kind }: RigTarget) => (kind === 'rigs' ? RIGS : RIG_CLAIMS);

/** Path of the stream of the serial console. */
export const consolePath = (target: RigTarget): string =>
  objectPath(typeOf(target), target.name, target.namespace || undefined, 'console') +
  query({ stdin: true, stdout: true, tty: true });

/** Switches the power of the board. Resolves with the output of the commands. */
export async function switchPower(api: Api, target: RigTarget, action: PowerAction): Promise<string> {
  const path = objectPath(typeOf(target), target.name, target.namespace || undefined, 'power') + query({ action });
  const { message = '' } = await api.json<{ readonly message?: string }>(path, { method: 'POST' });
  return message;
}

const DURATION = /^(?:\d{1,6}h)?(?:\d{1,6}m)?(?:\d{1,6}s)?$/;

export async function claimRig(api: Api, rig: string, namespace: string, duration: string): Promise<string> {
  if (!DURATION.test(duration)) throw new Error(`duration ${duration}: use a duration such as 30m or 2h`);
  const claim = await api.json<AnyObject>(collectionPath(RIG_CLAIMS, namespace), {
    method: 'POST',
    body: {
      apiVersion: 'rig.hyperedge.dev/v1alpha1',
      kind: 'RigClaim',
      metadata: { generateName: 'console-' },
      spec: { rigName: rig, ...(duration === '' ? {} : { duration }) },
    },
  });
  return claim.metadata?.name ?? '';
}

/** Claims of a rig in the order of its queue: the holder first, then by position. */
export function queueOf(rig: string, claims: readonly AnyObject[]): readonly AnyObject[] {
  const isOf = (claim: AnyObject): boolean =>
    textAt(claim, 'status', 'rig') === rig || textAt(claim, 'spec', 'rigName') === rig;
  const isOpen = (claim: AnyObject): boolean => /^(?:Granted|Queued|)$/.test(textAt(claim, 'status', 'phase'));
  const order = (claim: AnyObject): number =>
    textAt(claim, 'status', 'phase') === 'Granted' ? 0 : Number(textAt(claim, 'status', 'position') || 10_000);
  return claims.filter((claim) => isOf(claim) && isOpen(claim)).toSorted((a, b) => order(a) - order(b));
}

/** Reason why the rig has no console; undefined if it has one. */
export const withoutConsole = (rig: AnyObject): string | undefined =>
  fieldAt(rig, 'spec', 'console') === undefined ? 'This rig has no console; set spec.console.' : undefined;

export function withoutPower(rig: AnyObject, action: PowerAction): string | undefined {
  const power = fieldAt(rig, 'spec', 'power');
  const has = (name: string): boolean => fieldAt(power, name) !== undefined;
  if (has(action) || (action === 'cycle' && has('on') && has('off'))) return undefined;
  return `This rig has no spec.power.${action}; set it.`;
}

/** Text of the confirmation before a claim is released. */
export const releaseText = (namespace: string, name: string): string =>
  `The claim ${namespace}/${name} is deleted. Its pods are deleted, and the next claim has the rig.`;
