/** Names of fixtures. A fixture is an extended resource of its Node and a device in the Node's ResourceSlice. */
import type { ResourceClaim } from '../../api/devices/types.ts';
import { RIG_GROUP, type Rig } from './rig-types.ts';

/** Device name of a fixture in the ResourceSlice: the fixture's name as a DNS label. */
export const fixtureDeviceName = (fixture: string): string =>
  fixture
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 63)
    .replace(/-+$/, '');

interface FixtureDevice {
  readonly node: string;
  readonly device: string;
}

/** Fixtures that are allocated to a claim. Allocations with admin access do not count. */
export function claimedFixtures({ status }: ResourceClaim): FixtureDevice[] {
  return (status?.allocation?.devices?.results ?? []).flatMap(({ driver, pool = '', device = '', adminAccess }) =>
    driver === RIG_GROUP && adminAccess !== true ? [{ node: pool, device }] : [],
  );
}

/** Name of the first rig that contains the fixture with this device name. */
export const rigOfDevice = (rigs: readonly Rig[], device: string): string | undefined =>
  rigs.find(({ spec }) => spec?.fixtures?.some(({ fixture = '' }) => fixtureDeviceName(fixture) === device))?.metadata
    ?.name;
