/** All packages that are declared by hand: OpenShift's groups and `rig.hyperedge.dev`. */
import { rigPackage } from '../rig.ts';
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { projectPackage } from './project.ts';
import { routePackage } from './route.ts';

const packages = [projectPackage, routePackage, rigPackage];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
