/** Executes steps of a machine's plan that concern its host. */

import { resources } from '../../../api/resources.ts';
import { decodeJson, object, type Schema, text as string } from '../../../base/decode.ts';
import { CodedError } from '../../../base/errors.ts';
import type { ControllerHandle } from '../../../controllers/framework/framework.ts';
import { ignoreNotFound } from '../../../controllers/framework/ignore-not-found.ts';
import { isOffered } from '../core/bare-metal-host.ts';
import {
  type BareMetalHost,
  HOST_FINALIZER,
  MACHINE_GROUP,
  MACHINE_VERSION,
  type Machine,
  type MachinePhase,
  REPORTED_ANNOTATION,
  SEALED_ANNOTATION,
  SEALING_ANNOTATION,
} from '../kinds/machine-types.ts';
import { sshAddressOf } from '../kinds/ssh-address.ts';
import type { MachineProvisioner, SealedJoin, SshTarget } from '../machines-port.ts';

/** Minimum remaining lifetime of a sealed token. A token that expires sooner is replaced. */
const RENEW_MS = 5 * 60_000;

export interface HostSteps {
  claim(host: BareMetalHost, machine: Machine): Promise<void>;
  /**
   * Seals a join token for a host that has offered itself, or installs the host over SSH. Resolves with the machine's
   * new phase if the phase changes immediately.
   */
  provision(host: BareMetalHost, machine: Machine): Promise<MachinePhase | undefined>;
  /** Revokes the join token that was sealed for the host. */
  withdraw(host: BareMetalHost): Promise<void>;
  wipe(host: BareMetalHost): Promise<void>;
  release(host: BareMetalHost): Promise<void>;
}

export function createHostSteps(handle: ControllerHandle, provisioner: MachineProvisioner): HostSteps {
  const hosts = handle.writer(resources.bareMetalHosts);

  const claim = async (host: BareMetalHost, { metadata }: Machine): Promise<void> => {
    const consumerRef = {
      apiVersion: `${MACHINE_GROUP}/${MACHINE_VERSION}`,
      kind: 'Machine',
      name: metadata?.name ?? '',
      namespace: metadata?.namespace ?? '',
      uid: metadata?.uid ?? '',
    };
    const finalizers = [...new Set([...(host.metadata?.finalizers ?? []), HOST_FINALIZER])];
    // The update fails if the host has changed since planning, so that only one of two machines can claim the host.
    await hosts.update({ ...host, metadata: { ...host.metadata, finalizers }, spec: { ...host.spec, consumerRef } });
  };

  const provision = async (host: BareMetalHost, machine: Machine): Promise<MachinePhase | undefined> => {
    const request = {
      roles: machine.spec?.providerSpec?.value?.roles ?? ['node'],
      nodeName: host.metadata?.name ?? '',
    };
    if (!isOffered(host)) {
      await provisioner.install(await sshTarget(handle, host), request);
      return 'Provisioned';
    }
    const present = sealedOf(host);
    if (present !== undefined && Date.parse(present.expires) - handle.clock.nowMs() > RENEW_MS) return undefined;
    const sealed = await provisioner.seal(request, host.metadata?.annotations?.[SEALING_ANNOTATION] ?? '');
    try {
      const annotations = { ...host.metadata?.annotations, [SEALED_ANNOTATION]: JSON.stringify(sealed) };
      await hosts.update({ ...host, metadata: { ...host.metadata, annotations } });
    } catch (error) {
      await provisioner.revoke(sealed.tokenId);
      throw error;
    }
    if (present !== undefined) await provisioner.revoke(present.tokenId);
    return undefined;
  };

  const withdraw = async (host: BareMetalHost): Promise<void> => {
    const present = sealedOf(host);
    if (present === undefined) return;
    await provisioner.revoke(present.tokenId);
    await patchHost(host, { metadata: { annotations: { [SEALED_ANNOTATION]: null } } });
  };

  const patchHost = (host: BareMetalHost, body: object, subresource?: 'status'): Promise<void> =>
    ignoreNotFound(() =>
      hosts.patch(
        host.metadata?.name ?? '',
        host.metadata?.namespace,
        'merge',
        body,
        subresource === undefined ? {} : { subresource },
      ),
    );

  const wipe = async (host: BareMetalHost): Promise<void> => {
    await withdraw(host);
    if (isOffered(host)) {
      // The last report may be older than the join of the host, so the host must report again that it is blank.
      await patchHost(host, { metadata: { annotations: { [REPORTED_ANNOTATION]: null } } });
    } else {
      await provisioner.reset(await sshTarget(handle, host), host.spec?.automatedCleaningMode !== 'disabled');
    }
    await patchHost(host, { status: { provisioning: { state: 'deprovisioning' } } }, 'status');
  };

  const release = async (host: BareMetalHost): Promise<void> => {
    const { consumerRef: _released, ...spec } = host.spec ?? {};
    const finalizers = (host.metadata?.finalizers ?? []).filter((each) => each !== HOST_FINALIZER);
    await ignoreNotFound(() => hosts.update({ ...host, metadata: { ...host.metadata, finalizers }, spec }));
  };

  return { claim, provision, withdraw, wipe, release };
}

const SEALED: Schema<SealedJoin> = object({ sealed: string, tokenId: string, expires: string });

function sealedOf(host: BareMetalHost): SealedJoin | undefined {
  try {
    const text = host.metadata?.annotations?.[SEALED_ANNOTATION];
    return text === undefined ? undefined : decodeJson(SEALED, text, SEALED_ANNOTATION);
  } catch {
    return undefined;
  }
}

/**
 * Address and keys for connecting to the host. Throws CodedError 'bad-credentials' that names the Secret and the key.
 */
export async function sshTarget(handle: ControllerHandle, host: BareMetalHost): Promise<SshTarget> {
  const { bmc } = host.spec ?? {};
  const address = sshAddressOf(bmc?.address ?? '');
  const { name = '', namespace = '' } = host.metadata ?? {};
  if (address === undefined)
    throw new CodedError('bad-credentials', `baremetalhost ${name}: spec.bmc.address: missing`);
  const secretName = bmc?.credentialsName ?? '';
  const { data = {} } = await handle.writer(resources.secrets).get(secretName, namespace);
  const read = (key: string): string => {
    const text = Buffer.from(data[key] ?? '', 'base64')
      .toString('utf8')
      .trim();
    if (text === '')
      throw new CodedError('bad-credentials', `secret ${namespace}/${secretName}: key ${key} is missing`);
    return text;
  };
  const hostKey = read('ssh-hostkey');
  if (
    !/^(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/=]+( .*)?$/.test(hostKey) ||
    hostKey.includes('\n')
  )
    throw new CodedError(
      'bad-credentials',
      `secret ${namespace}/${secretName}: ssh-hostkey: must be one public key line, such as that of /etc/ssh/ssh_host_ed25519_key.pub`,
    );
  return { address, privateKey: `${read('ssh-privatekey')}\n`, hostKey };
}
