# SPDX-License-Identifier: GPL-3.0-or-later
"""An AWS account on this machine: moto, with the services that it lacks beside it. On loopback, unless pods are to reach it."""
