/** iSCSI sessions through open-iscsi. Source: iscsiadm(8); pkg/volume/iscsi iscsi_util.go. */
import { access } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { portalWithPort } from '../../../api/volumes/iscsi.ts';
import { CodedError, messageOf } from '../../../base/errors.ts';
import type { IscsiChap, IscsiTarget } from '../../volumes/tools-port.ts';
import { run } from './run-tool.ts';

const DEVICE_POLL_MS = 200;
const DEVICE_TRIES = 50;

export async function iscsiLogin({ portals, iqn, lun, interface: card, chap }: IscsiTarget): Promise<string> {
  let failure: unknown;
  for (const portal of portals.map(portalWithPort)) {
    try {
      const discovery = ['-m', 'discoverydb', '-t', 'sendtargets', '-p', portal, '-I', card];
      const node = ['-m', 'node', '-p', portal, '-T', iqn, '-I', card];
      if (chap !== undefined) await run('iscsiadm', [...discovery, '-o', 'new']);
      await authenticate(discovery, 'discovery.sendtargets.auth', chap?.discovery ?? {});
      await run('iscsiadm', [...discovery, '--discover']);
      await authenticate(node, 'node.session.auth', chap?.session ?? {});
      await run('iscsiadm', [...node, '--login']).catch((error: unknown) => {
        if (!/already (?:exists|present)/i.test(messageOf(error))) throw error;
      });
      const device = `/dev/disk/by-path/ip-${portal}-iscsi-${iqn}-lun-${lun}`;
      if (await appears(device)) return device;
      failure = new CodedError('iscsi', `iscsi: ${device} did not appear; check the target's unit ${lun}`);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

/** Writes names and passwords into a record of open-iscsi. Errors never contain the values. */
async function authenticate(record: readonly string[], prefix: string, chap: IscsiChap['session']): Promise<void> {
  if (Object.keys(chap).length === 0) return;
  for (const [name, value] of [[`${prefix}.authmethod`, 'CHAP'] as const, ...Object.entries(chap)]) {
    try {
      await run('iscsiadm', [...record, '-o', 'update', '-n', name, '-v', value]);
    } catch (error) {
      if (error instanceof CodedError && error.code === 'tool-missing') throw error;
      throw new CodedError('tool', `iscsiadm: ${name} was not set`);
    }
  }
}

/** Names of the targets with a session. A line of iscsiadm is `tcp: [1] 192.0.2.1:3260,1 iqn.… (non-flash)`. */
export async function iscsiSessions(): Promise<readonly string[]> {
  const listed = await run('iscsiadm', ['-m', 'session']).catch((error: unknown) => {
    if (/No active sessions/i.test(messageOf(error))) return '';
    throw error;
  });
  return listed.split('\n').flatMap((line) => /^\S+: \[\d+\] \S+ (\S+)/.exec(line)?.[1] ?? []);
}

export async function iscsiLogout({ portals, iqn }: Pick<IscsiTarget, 'portals' | 'iqn'>): Promise<void> {
  for (const portal of portals.map(portalWithPort)) {
    await run('iscsiadm', ['-m', 'node', '-p', portal, '-T', iqn, '--logout']).catch((error: unknown) => {
      // Exit code 21 means no session, which is the desired state. Without the tool there is no session either.
      if (!/No matching sessions|No records found|not installed/i.test(messageOf(error))) throw error;
    });
  }
}

async function appears(device: string): Promise<boolean> {
  for (let tries = DEVICE_TRIES; tries > 0; tries--) {
    if (
      await access(device).then(
        () => true,
        () => false,
      )
    )
      return true;
    await sleep(DEVICE_POLL_MS);
  }
  return false;
}
