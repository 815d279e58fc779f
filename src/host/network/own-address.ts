/**
 * Handles a change of this host's address: updates certificates, configuration files and static pods of the control
 * plane, the address in the gossip ring, and the peer URL in the store.
 */

import { messageOf } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { Timer } from '../../base/time/clock.ts';
import { masterFiles } from '../../pki/index.ts';
import type { EtcdMember, StoreAccess } from '../../store/administration/port.ts';
import { ownsStore } from '../certificates/issue-certificates.ts';
import { renewCertificates } from '../certificates/renew-certificates.ts';
import { followAuthorities } from '../certificates/shared-authorities.ts';
import type { Settings } from '../config/settings.ts';
import { openClient } from '../process/api-access.ts';
import { systemClock as clock, systemRandom as random } from '../process/process.ts';
import type { TrustedTime } from '../run/trusted-time.ts';
import { etcdAccess, ownEtcd } from '../store/access.ts';
import type { HostGossip } from './gossip.ts';
import type { NodeAddresses } from './node-addresses.ts';

export interface OwnAddressOptions {
  /** Settings at the start of the host process. */
  readonly settings: Settings;
  readonly reload: () => Promise<Settings>;
  readonly addresses: Pick<NodeAddresses, 'current' | 'onChange'>;
  readonly gossip: Pick<HostGossip, 'readvertise'>;
  /** Writes certificates, configuration files and manifests for the settings. Components reload the changed files. */
  readonly reinstall: (settings: Settings) => Promise<void>;
  readonly time: TrustedTime;
  readonly onRenewed: () => void;
  readonly log: Log;
}

export interface OwnAddress {
  /** Returns the settings with the current addresses. */
  readonly settings: () => Settings;
  stop(): void;
}

const RETRY_MS = 2_000;
const ANSWER_MS = 3_000;

export function followOwnAddress(options: OwnAddressOptions): OwnAddress {
  const { addresses, gossip, time, onRenewed } = options;
  const log = options.log.named('addresses');
  let { settings } = options;
  let stopped = false;
  let timer: Timer | undefined;
  let wanted = false;
  let running = false;

  const round = async (): Promise<void> => {
    if (running) return;
    running = true;
    while (wanted && !stopped) {
      wanted = false;
      try {
        await adopt();
        await announcePeerUrl(settings, log);
      } catch (error) {
        log.v(2, 'changed address not announced everywhere; retrying', { error: messageOf(error) });
        wanted = true;
        await new Promise<void>((resolve) => {
          timer = clock.setTimer(RETRY_MS, resolve);
        });
      }
    }
    running = false;
  };

  const adopt = async (): Promise<void> => {
    const nodeIps = addresses.current();
    const [nodeIp = settings.nodeIp] = nodeIps;
    if (nodeIps.join() === settings.nodeIps.join()) return;
    const fresh = await options.reload();
    const follows = settings.gossip.advertiseAddress === settings.nodeIp;
    const advertiseAddress = follows ? nodeIp : settings.gossip.advertiseAddress;
    const next = { ...fresh, nodeIp, nodeIps, gossip: { ...fresh.gossip, advertiseAddress } };
    await options.reinstall(next);
    settings = next;
    onRenewed();
    await gossip.readvertise(advertiseAddress);
  };

  const follow = (): void => {
    wanted = true;
    void round();
  };
  addresses.onChange(follow);
  // The address may have changed while the host was switched off.
  follow();
  const current = (): Settings => settings;
  const stopFollowing = settings.roles.has('master')
    ? followAuthorities({
        settings: current,
        openAdmin: () => openClient(masterFiles(settings.root).adminKubeconfig, 'hyperedge', { clock, random, log }),
        onAdopted: async () => {
          await options.reinstall(settings);
          onRenewed();
        },
        log: options.log.named('authorities'),
      })
    : () => {};
  const renewal = renewCertificates({ settings: current, time, onRenewed, log: options.log.named('certificates') });
  return {
    settings: current,
    stop: () => {
      renewal.stop();
      stopFollowing();
      stopped = true;
      timer?.cancel();
    },
  };
}

/**
 * Updates this member's peer URL in the store. With an old URL, the other members cannot reach this member, so the
 * request is sent to them. Throws CodedErrors of the store.
 */
async function announcePeerUrl(settings: Settings, log: Log): Promise<void> {
  if (!ownsStore(settings) || settings.nodeIpIsBridge) return;
  const { root, nodeName } = settings;
  const { peer } = (await ownEtcd(root)).advertise;
  const access = await etcdAccess({ root });
  const known = await membersOf(access);
  const own = known.find(({ name }) => name === nodeName);
  if (own === undefined || same(own.peerUrls, peer)) return;
  const others = known.filter(({ id }) => id !== own.id).flatMap(({ clientUrls }) => clientUrls);
  const admin = access.open(others.length > 0 ? others : access.endpoints);
  try {
    await admin.updateMember(own.id, peer);
    log.info('peer URL of this store member changed', { from: own.peerUrls.join(), to: peer.join() });
  } finally {
    admin.close();
  }
}

/** Members of the store as this host's member knows them. */
async function membersOf(access: StoreAccess): Promise<readonly EtcdMember[]> {
  const admin = access.open();
  try {
    return await admin.localMembers(ANSWER_MS);
  } finally {
    admin.close();
  }
}

const same = (left: readonly string[], right: readonly string[]): boolean =>
  [...left].sort().join() === [...right].sort().join();
