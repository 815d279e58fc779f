import { readSchedulerConfiguration } from '../../scheduler/config/configuration.ts';
import type { SchedulerSettings } from '../../scheduler/index.ts';
import { createExtenderCaller } from '../../scheduler/io/extenders/index.ts';

export interface ConfiguredScheduler {
  readonly deps: {
    readonly settings?: SchedulerSettings;
    readonly extenders?: ReturnType<typeof createExtenderCaller>;
  };
  close(): Promise<void>;
}

/** Scheduler settings from a KubeSchedulerConfiguration. Throws CodedError 'bad-config' with file, line and field. */
export async function configureScheduler(
  file: string | undefined,
  resolve: (path: string) => string,
): Promise<ConfiguredScheduler> {
  if (file === undefined) return { deps: {}, close: async () => {} };
  const settings = await readSchedulerConfiguration(resolve(file));
  const extenders = createExtenderCaller();
  return { deps: { settings, extenders }, close: () => extenders.close() };
}
