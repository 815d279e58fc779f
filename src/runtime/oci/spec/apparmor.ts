/** AppArmor profiles of containers. Source: apparmor(7), apparmor.d(5); pkg/security/apparmor. */
import { readFile } from 'node:fs/promises';
import { type ContainerSecurity, RuntimeError } from '../../port.ts';
import { runCommand } from '../command.ts';

export interface AppArmorFiles {
  readonly enabled: string;
  readonly profiles: string;
  readonly parser: string;
}

const FILES: AppArmorFiles = {
  enabled: '/sys/module/apparmor/parameters/enabled',
  profiles: '/sys/kernel/security/apparmor/profiles',
  parser: 'apparmor_parser',
};

const DEFAULT_NAME = 'hyperedge-default';

/** Default profile: allows what containers usually need and denies changes to the host's kernel. */
const DEFAULT_PROFILE = `
#include <tunables/global>
profile ${DEFAULT_NAME} flags=(attach_disconnected,mediate_deleted) {
  #include <abstractions/base>
  capability,
  file,
  network,
  umount,
  signal (receive) peer=unconfined,
  signal (send,receive) peer=${DEFAULT_NAME},
  ptrace (trace,read,tracedby,readby) peer=${DEFAULT_NAME},
  deny mount,
  deny @{PROC}/sysrq-trigger rwklx,
  deny @{PROC}/kcore rwklx,
  deny @{PROC}/sys/kernel/[^smn]** wklx,
  deny /sys/firmware/** rwklx,
  deny /sys/kernel/security/** rwklx,
}
`;

export async function appArmorEnabled(files: AppArmorFiles = FILES): Promise<boolean> {
  const text = await readFile(files.enabled, 'utf8').catch(() => '');
  return text.startsWith('Y');
}

/**
 * Name of the profile for a container; undefined for none. Throws RuntimeError 'create-failed' if the profile is not
 * loaded.
 */
export async function appArmorProfile(
  { appArmor }: Pick<ContainerSecurity, 'appArmor'>,
  files: AppArmorFiles = FILES,
): Promise<string | undefined> {
  if (appArmor === undefined || appArmor.type === 'unconfined') return undefined;
  if (!(await appArmorEnabled(files)))
    throw new RuntimeError('create-failed', 'Cannot enforce AppArmor: AppArmor is not enabled on the host');
  const name = appArmor.type === 'localhost' ? appArmor.profile : DEFAULT_NAME;
  if (await isLoaded(name, files)) return name;
  if (appArmor.type === 'localhost') throw new RuntimeError('create-failed', `apparmor profile not found ${name}`);
  await runCommand(files.parser, ['--replace'], { input: DEFAULT_PROFILE });
  return name;
}

/** The kernel lists one `NAME (MODE)` per line. */
async function isLoaded(name: string, { profiles }: AppArmorFiles): Promise<boolean> {
  const text = await readFile(profiles, 'utf8').catch(() => '');
  return text.split('\n').some((line) => line.replace(/ \([a-z]+\)$/, '') === name);
}
