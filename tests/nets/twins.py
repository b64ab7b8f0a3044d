"""Networks that are the same code as another one, which stands for them where code is tested."""

# Networks -> the same code with fewer layers or another width, which is tested in their place.
TWINS = {
    f"resnet_{v}_{layers}": f"resnet_{v}_50" for v in ("v1", "v2") for layers in (101, 152, 200)
}
TWINS |= {f"{family}_large": f"{family}_mobile" for family in ("nasnet", "pnasnet")}
TWINS |= {f"mobilenet_v1_{width}": "mobilenet_v1" for width in ("075", "050", "025")}
TWINS |= {f"mobilenet_v2_{width}": "mobilenet_v2" for width in ("140", "035")}
TWINS |= {"mobilenet_edgetpu_075": "mobilenet_edgetpu", "vgg_16": "vgg_a", "vgg_19": "vgg_a"}

# Networks -> one of the same layers in another order or with another stem; what they compute is
# compared with the reference of each, what training does with that of the second.
VARIANTS = {
    f"mobilenet_v3_large{kind}": f"mobilenet_v3_small{kind}" for kind in ("", "_minimalistic")
}
VARIANTS |= {"nasnet_cifar": "nasnet_mobile"}  # which has fewer cells
