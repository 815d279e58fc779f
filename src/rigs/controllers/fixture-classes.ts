/** Creates a DeviceClass for each type of test rig fixture, so that users need not create a class for their claims. */
import type { DeviceClass } from '../../api/devices/types.ts';
import { resources } from '../../api/resources.ts';
import { createUnlessPresent } from '../../controllers/framework/create-unless-present.ts';
import type { ControllerSpec } from '../../controllers/framework/framework.ts';

const DRIVER = 'rig.hyperedge.dev';
const TYPES = ['serial', 'gpio', 'video', 'block', 'relay', 'device'] as const;

export const fixtureClassesController: ControllerSpec = {
  name: 'fixture-classes',
  eventSource: 'rig-controller',
  reads: [],
  writes: [resources.deviceClasses],
  prepare(handle) {
    const client = handle.writer(resources.deviceClasses);
    return async () => {
      for (const type of TYPES) await createUnlessPresent(() => client.create(fixtureClass(type)));
    };
  },
};

/** DeviceClass for fixtures of this type, named for example `serial.rig.hyperedge.dev`. */
function fixtureClass(type: string): DeviceClass {
  const expression = `device.driver == "${DRIVER}" && device.attributes["${DRIVER}"].type == "${type}"`;
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: `${type}.${DRIVER}` },
    spec: { selectors: [{ cel: { expression } }] },
  };
}
