/**
 * All packages that are declared by hand: OpenShift's groups, the operator lifecycle manager and `rig.hyperedge.dev`.
 */
import { olmPackages } from '../olm/index.ts';
import { rigPackage } from '../rig.ts';
import type { Descriptions, GeneratedTypes } from '../types-format.ts';
import { authorizationPackage } from './authorization.ts';
import { bareMetalPackage, hostOfferPackage } from './bare-metal.ts';
import { configPackage } from './config.ts';
import { imagePackage } from './image.ts';
import { machinePackage } from './machine.ts';
import { machineConfigurationPackage } from './machineconfiguration.ts';
import { oauthPackage } from './oauth.ts';
import { operatorPackage } from './operator.ts';
import { projectPackage } from './project.ts';
import { quotaPackage } from './quota.ts';
import { routePackage } from './route.ts';
import { securityPackage } from './security.ts';
import { templatePackage } from './template.ts';
import { userPackage } from './user.ts';

const packages = [
  authorizationPackage,
  bareMetalPackage,
  hostOfferPackage,
  machinePackage,
  configPackage,
  imagePackage,
  machineConfigurationPackage,
  oauthPackage,
  operatorPackage,
  ...olmPackages,
  projectPackage,
  quotaPackage,
  rigPackage,
  routePackage,
  securityPackage,
  templatePackage,
  userPackage,
];

export const openshiftTypes: GeneratedTypes = Object.assign({}, ...packages.map(({ types }) => types));

export const openshiftDescriptions: Descriptions = Object.assign({}, ...packages.map((each) => each.descriptions));
